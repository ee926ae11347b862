"""The search above floors against the whole product. Its kernel runs on a GPU only."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clusterea.numerics import expected_cells as expected_module
from clusterea.numerics import gpu_search
from clusterea.numerics.expected_cells import expected_cells
from clusterea.numerics.gpu_search import _floors, best_cells_on_gpu, suits
from clusterea.numerics.knn import BestCells, extended
from clusterea.numerics.rows import Rows
from clusterea.numerics.ties import tie_vectors
from clusterea.types import Pair
from vector_problems import problem
from whole_runs import nearest


@pytest.mark.parametrize("width", [1, 66, 316])
def test_nearly_all_rows_have_enough_cells_above_their_floor(width: int) -> None:
    draw = torch.Generator().manual_seed(0)
    others = torch.nn.functional.normalize(torch.randn(40_000, 16, generator=draw), dim=1)
    rows = others[:500].roll(1, 1)
    sample = others[torch.randperm(40_000, generator=draw)[:2500]]
    above = (rows @ others.T > _floors(rows, sample, width).unsqueeze(1)).sum(1)
    assert (above < width).float().mean() < 0.05
    assert above.float().mean() < 1.5 * expected_cells(width)


def test_it_is_for_large_sides_on_a_gpu() -> None:
    assert not suits(Pair(10**6, 10**6), 66, torch.device("cpu"))
    assert not suits(Pair(10**6, 1000), 66, torch.device("cuda"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.gpu
class TestGpu:
    def sides(
        self, sizes: tuple[int, int], distinct: int | None = None
    ) -> tuple[Pair[Tensor], Pair[Tensor]]:
        """Vectors and tie vectors."""
        source, target, keys = problem(*sizes, 72, distinct)
        ties = tie_vectors(keys.map(lambda side: side.cuda()), 0)
        return Pair(source, target).map(lambda side: side.half().cuda()), ties

    def product(self, sides: Pair[Tensor], ties: Pair[Tensor]) -> Tensor:
        left, right = (
            extended(Rows([side]), 0, len(side), near)[: len(side)]
            for side, near in zip(sides, ties, strict=True)
        )
        return torch.mm(left, right.T, out_dtype=torch.float32)

    def check(self, best: Pair[BestCells], cells: Tensor, width: int) -> None:
        for side, every in ((best.source, cells), (best.target, cells.T)):
            wanted = every.topk(width, dim=1).values
            torch.testing.assert_close(
                side.cells.sort(1, descending=True).values, wanted, rtol=0, atol=1e-5
            )
            own = every.gather(1, side.columns.long())
            torch.testing.assert_close(own, side.cells, rtol=0, atol=1e-5)
            assert bool((side.columns.sort(1).values.diff(dim=1) > 0).all())

    @pytest.mark.parametrize("sizes", [(5000, 4000), (1300, 2700)])
    @pytest.mark.parametrize("deviations", [2.3, -1.0])  # -1: many rows are computed again
    @pytest.mark.parametrize("distinct", [None, 3])
    def test_the_whole_product_agrees(
        self,
        sizes: tuple[int, int],
        deviations: float,
        distinct: int | None,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(expected_module, "DEVIATIONS", deviations)
        monkeypatch.setattr(gpu_search, "GROUP", 128)
        monkeypatch.setattr(gpu_search, "fitting_size", lambda *_: 300 * 400)
        sides, ties = self.sides(sizes, distinct)
        rows = Pair(Rows([sides.source[:1024], sides.source[1024:]]), Rows([sides.target]))
        best = best_cells_on_gpu(rows, 20, ties)
        self.check(best, self.product(sides, ties), 20)

    def test_the_search_in_blocks_agrees(self) -> None:
        source, target, keys = problem(40_000, 60_000, 64)
        source, target, device = source.cuda(), target.cuda(), torch.device("cuda")
        assert suits(Pair(40_000, 60_000), 66, device)
        found = nearest(source, target, 50, keys, 0, device=device)
        wanted = nearest(source, target, 50, keys, 0, device=device, block=Pair(8192, 8192))
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one.values, other.values, rtol=0, atol=1e-6)
            assert (one.indices == other.indices).float().mean() > 0.999

    @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="no second CUDA device")
    def test_another_gpu_than_the_current_one(self) -> None:
        sides, ties = self.sides((5000, 4000))
        there = torch.device("cuda", 1)
        sides, ties = (both.map(lambda side: side.to(there)) for both in (sides, ties))
        best = best_cells_on_gpu(sides.map(lambda side: Rows([side])), 20, ties)
        self.check(best, self.product(sides, ties), 20)

    def test_rows_miss_only_what_they_are_not_compared_with(self) -> None:
        sides, ties = self.sides((8192, 4096))
        wanted = torch.rand(8192 // gpu_search.GROUP, 4096, device="cuda") < 0.9
        best = best_cells_on_gpu(
            sides.map(lambda side: Rows([side])),
            20,
            ties,
            compared=lambda group: wanted[group].nonzero().flatten().int(),
        )
        near = self.product(sides, ties).topk(20, dim=1).indices
        is_compared = wanted.repeat_interleave(gpu_search.GROUP, 0)
        found = torch.zeros_like(is_compared).scatter_(1, best.source.columns.long(), True)
        assert (found.gather(1, near) | ~is_compared.gather(1, near)).float().mean() > 0.99
