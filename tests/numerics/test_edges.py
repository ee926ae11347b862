"""Edge operations against loops, forwards and backwards, whole and in chunks."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clusterea.numerics import edges
from clusterea.numerics.block_sizes import BLOCK_SIZES
from clusterea.numerics.edges import edge_dots, reflect_and_sum

NODES, KINDS, EDGES, CHANNELS, DIM, RECEIVERS = 5, 3, 11, 2, 4, 6

Operands = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


@pytest.fixture
def operands() -> Operands:
    """states, kinds, attention, sender, kind, receiver; receivers 0 and 4 hear nothing."""
    draw = torch.Generator().manual_seed(7)

    def numbers(*shape: int) -> Tensor:
        return torch.randn(shape, dtype=torch.float64, generator=draw).requires_grad_()

    sender = torch.randint(NODES, (EDGES,), generator=draw)
    kind = torch.randint(KINDS, (EDGES,), generator=draw)
    receiver = torch.tensor([1, 1, 1, 1, 2, 2, 3, 3, 3, 3, 5])
    return (
        numbers(NODES, CHANNELS, DIM),
        numbers(KINDS, DIM),
        numbers(EDGES, CHANNELS),
        sender,
        kind,
        receiver,
    )


def reflect_and_sum_by_loops(operands: Operands) -> Tensor:
    states, axes, attention, sender, kind, receiver = operands
    result = torch.zeros(RECEIVERS, CHANNELS, DIM, dtype=torch.float64)
    for edge in range(EDGES):
        for channel in range(CHANNELS):
            state, axis = states[sender[edge], channel], axes[kind[edge]]
            reflected = state - 2 * torch.dot(state, axis) * axis
            added = torch.zeros_like(result)
            added[receiver[edge], channel] = attention[edge, channel] * reflected
            result = result + added
    return result


class TestEdgeDots:
    def test_values(self, operands: Operands) -> None:
        states, kinds, _, sender, kind, _ = operands
        dots = edge_dots(states, kinds, sender, kind)
        assert dots.shape == (EDGES, CHANNELS)
        for edge in range(EDGES):
            for channel in range(CHANNELS):
                wanted = torch.dot(states[sender[edge], channel], kinds[kind[edge]])
                torch.testing.assert_close(dots[edge, channel], wanted)

    @pytest.mark.parametrize("numbers_in_chunk", [1, 3 * CHANNELS * DIM, 1 << 20])
    def test_gradients(
        self, operands: Operands, numbers_in_chunk: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(BLOCK_SIZES, "edges", {"cpu": numbers_in_chunk})
        states, kinds, _, sender, kind, _ = operands
        assert torch.autograd.gradcheck(edge_dots, (states, kinds, sender, kind))

    def test_no_edges(self, operands: Operands) -> None:
        states, kinds, *_ = operands
        none = torch.zeros(0, dtype=torch.int64)
        dots = edge_dots(states, kinds, none, none)
        assert dots.shape == (0, CHANNELS)
        dots.sum().backward()  # type: ignore[no-untyped-call]
        assert states.grad is not None
        assert not states.grad.any()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dim", [1, 100, 128])
def test_a_gpu_reflects_and_sums_alike(dim: int) -> None:
    draw = torch.Generator().manual_seed(0)
    receiver = torch.randint(300, (4000,), generator=draw).sort().values  # some hear nothing
    sender, kind = (torch.randint(size, (4000,), generator=draw) for size in (500, 20))
    states, axes, attention = numbers = [
        torch.randn(shape, generator=draw).requires_grad_()
        for shape in ((500, 2, dim), (20, dim), (4000, 2))
    ]
    slope = torch.randn(310, 2, dim, generator=draw)
    wanted = reflect_and_sum(states, axes, attention, sender, kind, receiver, 310)
    one, two, three = moved = [each.detach().cuda().requires_grad_() for each in numbers]
    sender, kind, receiver = sender.cuda(), kind.cuda(), receiver.cuda()
    found = reflect_and_sum(one, two, three, sender, kind, receiver, 310)
    torch.testing.assert_close(found.cpu(), wanted, rtol=1e-4, atol=1e-4)
    wanted.backward(slope)  # type: ignore[no-untyped-call]
    found.backward(slope.cuda())  # type: ignore[no-untyped-call]
    for there, here in zip(moved, numbers, strict=True):
        assert there.grad is not None
        torch.testing.assert_close(there.grad.cpu(), here.grad, rtol=1e-3, atol=1e-3)


class TestReflectAndSum:
    def test_values(self, operands: Operands) -> None:
        result = reflect_and_sum(*operands, RECEIVERS)
        torch.testing.assert_close(result, reflect_and_sum_by_loops(operands))
        assert not result[[0, 4]].any()  # who hears nothing sums nothing

    @pytest.mark.parametrize("numbers_in_chunk", [1, 3 * CHANNELS * DIM, 1 << 20])
    def test_gradients(
        self, operands: Operands, numbers_in_chunk: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(BLOCK_SIZES, "edges", {"cpu": numbers_in_chunk})
        assert torch.autograd.gradcheck(
            lambda *parts: reflect_and_sum(*parts, RECEIVERS),  # type: ignore[call-arg]
            operands,
        )


@pytest.mark.parametrize("numbers_in_chunk", [1, CHANNELS * DIM, 4 * CHANNELS * DIM, 90])
def test_chunks_change_nothing(
    operands: Operands, numbers_in_chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    states, kinds, attention, sender, kind, receiver = operands
    leaves = states, kinds, attention

    def run() -> list[Tensor]:
        dots = edge_dots(states, kinds, sender, kind)
        sums = reflect_and_sum(states, kinds, attention * dots, sender, kind, receiver, RECEIVERS)
        return [dots, sums, *torch.autograd.grad(sums.square().sum(), leaves)]

    whole = run()
    monkeypatch.setitem(BLOCK_SIZES, "edges", {"cpu": numbers_in_chunk})
    sizes = [chunk.stop - chunk.start for chunk in edges._chunks(EDGES, states)]
    assert sizes[0] < EDGES or numbers_in_chunk >= EDGES * CHANNELS * DIM
    for one, other in zip(whole, run(), strict=True):
        torch.testing.assert_close(one, other)
