"""The readout of Dual-AMN against its formula by autograd, whole and in blocks."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from clusterea.models.proxy_gate import proxy_gate
from clusterea.numerics.block_sizes import BLOCK_SIZES

NODES, CHANNELS, PROXIES, WIDTH = 7, 2, 3, 5


def by_autograd(
    own: Tensor, proxies: Tensor, directions: Tensor, gate: Tensor, bias: Tensor
) -> Tensor:
    """As in the paper of Dual-AMN: g x + (1 - g) (x - m)."""
    own = own.transpose(0, 1)
    nearness = normalize(own, dim=2) @ directions.transpose(1, 2)
    across = own - nearness.softmax(2) @ proxies
    opened = torch.sigmoid(across @ gate + bias)
    return (opened * own + (1 - opened) * across).transpose(0, 1)


@pytest.fixture
def operands() -> list[Tensor]:
    draw = torch.Generator().manual_seed(3)
    shapes = (
        (NODES, CHANNELS, WIDTH),
        (CHANNELS, PROXIES, WIDTH),
        (CHANNELS, PROXIES, WIDTH),
        (CHANNELS, WIDTH, WIDTH),
        (CHANNELS, 1, WIDTH),
    )
    return [
        torch.randn(shape, dtype=torch.float64, generator=draw).requires_grad_() for shape in shapes
    ]


@pytest.mark.parametrize("numbers_in_block", [1, 3 * WIDTH, 1 << 18])
def test_value_and_gradients(
    operands: list[Tensor], numbers_in_block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BLOCK_SIZES, "readout", {"cpu": numbers_in_block})
    found, wanted = proxy_gate(*operands), by_autograd(*operands)
    torch.testing.assert_close(found, wanted)
    slope = torch.randn(found.shape, dtype=torch.float64)
    torch.testing.assert_close(
        torch.autograd.grad(found, operands, slope), torch.autograd.grad(wanted, operands, slope)
    )


def test_changes_no_argument(operands: list[Tensor]) -> None:
    before = [operand.detach().clone() for operand in operands]
    proxy_gate(*operands).sum().backward()  # type: ignore[no-untyped-call]
    for operand, was in zip(operands, before, strict=True):
        assert torch.equal(operand.detach(), was)


def test_a_state_of_zeros_stays_finite(operands: list[Tensor]) -> None:
    own, *others = (operand.detach().float() for operand in operands)
    own[2] = 0
    own.requires_grad_()
    result = proxy_gate(own, *others)
    result.sum().backward()  # type: ignore[no-untyped-call]
    assert result.isfinite().all()
    assert own.grad is not None
    assert own.grad.isfinite().all()


def test_no_nodes(operands: list[Tensor]) -> None:
    own, *others = operands
    assert proxy_gate(own[:0], *others).shape == (0, CHANNELS, WIDTH)
