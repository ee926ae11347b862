"""Products of chosen pairs: exact, and the same wherever a pair stands."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from clusterea.numerics import dots
from clusterea.numerics.block_sizes import BLOCK_SIZES
from clusterea.numerics.dots import pair_dots, sampled_dots

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def problem(pairs: int, dim: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(dim)
    left, right = torch.randn(20, dim, generator=draw), torch.randn(30, dim, generator=draw)
    rows = torch.randint(20, (pairs,), generator=draw)
    return left, right, rows, torch.randint(30, (pairs,), generator=draw)


@pytest.mark.parametrize("dim", [1, 3, 8, 100, 769])
def test_loops_agree(dim: int) -> None:
    left, right, rows, columns = problem(40, dim)
    found = pair_dots(left, right, rows, columns)
    assert found.dtype == torch.float32
    for value, i, j in zip(found.tolist(), rows.tolist(), columns.tolist(), strict=True):
        products = (a * b for a, b in zip(left[i].tolist(), right[j].tolist(), strict=True))
        assert value == pytest.approx(math.fsum(products), rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("dim", [3, 8, 100, 769])
def test_neither_chunks_nor_places_show(dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    left, right, rows, columns = problem(200, dim)
    whole = pair_dots(left, right, rows, columns)
    order = torch.randperm(200, generator=torch.Generator().manual_seed(0))
    for numbers in (1, 10 * dim, 37 * dim):
        monkeypatch.setitem(BLOCK_SIZES, "pair products", {"cpu": numbers})
        assert torch.equal(pair_dots(left, right, rows, columns), whole)
        assert torch.equal(pair_dots(left, right, rows[order], columns[order]), whole[order])


def test_equal_vectors_have_equal_products() -> None:
    left, right, rows, columns = problem(200, 96)
    left[:], right[:] = left[0].clone(), right[0].clone()
    assert len(set(pair_dots(left, right, rows, columns).tolist())) == 1


def test_what_float32_would_lose() -> None:
    left = torch.tensor([[1e8, 1.0, -1e8]])
    assert pair_dots(left, torch.ones(1, 3), torch.tensor([0]), torch.tensor([0])).tolist() == [1]


def test_half_precision_rows() -> None:
    left, right, rows, columns = problem(40, 16)
    found = pair_dots(left.half(), right.half(), rows, columns)
    assert torch.equal(found, pair_dots(left.half().float(), right.half().float(), rows, columns))


def test_arguments_stay_as_they_are() -> None:
    left, right, rows, columns = problem(40, 16)
    before = left.double(), right.double()
    pair_dots(*before, rows, columns)
    assert torch.equal(before[0], left.double())
    assert torch.equal(before[1], right.double())


@pytest.mark.parametrize(("pairs", "dim"), [(0, 5), (3, 0)])
def test_nothing(pairs: int, dim: int) -> None:
    left, right, rows, columns = problem(pairs, dim)
    assert pair_dots(left, right, rows, columns).tolist() == [0.0] * pairs


@gpu
@pytest.mark.gpu
def test_a_gpu_agrees_to_the_last_bit() -> None:
    left, right, rows, columns = problem(500, 768)
    wanted = pair_dots(left, right, rows, columns)
    assert torch.equal(
        pair_dots(left.cuda(), right.cuda(), rows.cuda(), columns.cuda()).cpu(), wanted
    )


class TestSampled:
    """Products of each row with columns of its own."""

    def problem(self, rows: int, dim: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
        draw = torch.Generator().manual_seed(dim)
        left, right = torch.randn(rows, dim, generator=draw), torch.randn(30, dim, generator=draw)
        return left, right, torch.randint(30, (rows, width), generator=draw)

    @pytest.mark.parametrize("kind", [torch.int32, torch.int64])
    @pytest.mark.parametrize(("rows", "dim", "width"), [(20, 769, 7), (5, 1, 1), (1, 300, 30)])
    def test_the_whole_matrix_agrees(
        self, rows: int, dim: int, width: int, kind: torch.dtype
    ) -> None:
        left, right, columns = self.problem(rows, dim, width)
        found = sampled_dots(left, right, columns.to(kind))
        wanted = (left.double() @ right.double().T).gather(1, columns)
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)

    def test_parts_and_places_do_not_show(self, monkeypatch: pytest.MonkeyPatch) -> None:
        left, right, columns = self.problem(20, 300, 7)
        whole = sampled_dots(left, right, columns)
        order = torch.randperm(20, generator=torch.Generator().manual_seed(0))
        for cells in (1, 30, 70):
            monkeypatch.setattr(dots, "CELLS_AT_ONCE", cells)
            assert torch.equal(sampled_dots(left, right, columns), whole)
            assert torch.equal(sampled_dots(left[order], right, columns[order]), whole[order])
        monkeypatch.setattr(dots, "TABLE", 1)  # fewer dimensions at a time
        assert torch.equal(sampled_dots(left, right, columns).float(), whole.float())

    def test_equal_vectors_have_equal_products(self) -> None:
        left, right, columns = self.problem(20, 300, 7)
        left[:], right[:] = left[0].clone(), right[0].clone()
        assert len(set(sampled_dots(left, right, columns).flatten().tolist())) == 1

    @pytest.mark.parametrize("shape", [(0, 5, 3), (3, 0, 2), (3, 5, 0)])
    def test_nothing(self, shape: tuple[int, int, int]) -> None:
        left, right, columns = self.problem(*shape)
        assert sampled_dots(left, right, columns).tolist() == [[0.0] * shape[2]] * shape[0]
