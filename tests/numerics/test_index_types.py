"""The smallest types of integers."""

from __future__ import annotations

import pytest
import torch

from clusterea.numerics.index_types import as_index, index_type, number_type


@pytest.mark.parametrize("count", [0, 2**15 - 1, 2**15, 2**31 - 1, 2**31, 2**40])
def test_the_largest_number_fits_and_half_as_many_bits_do_not(count: int) -> None:
    for kind, smallest in ((number_type(count), torch.int16), (index_type(count), torch.int32)):
        assert int(torch.tensor(count, dtype=torch.int64).to(kind)) == count
        if kind != smallest:
            half = {torch.int64: torch.int32, torch.int32: torch.int16}[kind]
            assert int(torch.tensor(count, dtype=torch.int64).to(half)) != count


@pytest.mark.parametrize("kind", [torch.int16, torch.int32, torch.int64])
def test_what_indexes(kind: torch.dtype) -> None:
    numbers = torch.tensor([2, 0], dtype=kind)
    assert torch.arange(3).index_select(0, as_index(numbers)).tolist() == [2, 0]
