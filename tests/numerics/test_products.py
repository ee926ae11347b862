"""`linear` against torch's product, for layouts that a library may not expect."""

from __future__ import annotations

import pytest
import torch

from clusterea.numerics.products import linear


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 9])
def test_product(kind: torch.dtype, has_bias: bool, rows: int) -> None:
    draw = torch.Generator().manual_seed(1)
    left, right = (torch.randn(n, 6, dtype=kind, generator=draw) for n in (rows, 5))
    bias = torch.randn(5, dtype=kind, generator=draw) if has_bias else None
    wanted = left @ right.T + (0 if bias is None else bias)
    torch.testing.assert_close(linear(left, right, bias), wanted)


def test_no_weights() -> None:
    assert linear(torch.ones(3, 4), torch.ones(0, 4)).shape == (3, 0)
    assert torch.equal(linear(torch.ones(3, 0), torch.ones(2, 0)), torch.zeros(3, 2))


def test_rows_and_weights_with_gaps_between_them() -> None:
    draw = torch.Generator().manual_seed(2)
    left, right = torch.randn(8, 12, generator=draw), torch.randn(6, 5, generator=draw)
    torch.testing.assert_close(linear(left[::2, 1:7], right.T), left[::2, 1:7] @ right)
