"""The best cells of a dense block against a full sort, in slabs of any size."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from clusterea.numerics import blocks
from clusterea.numerics.blocks import best_columns, best_of_block, block_product
from clusterea.numerics.ties import as_dimensions, tie_vectors
from clusterea.types import Pair

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def block(
    rows: int, columns: int, *, distinct: int | None = None, dim: int = 6, seed: int = 0
) -> tuple[Pair[Tensor], Pair[Tensor], Pair[Tensor]]:
    """Unit vectors, shifts that are the same for the same vectors, and keys."""
    draw = torch.Generator().manual_seed(seed)
    kinds = distinct or rows + columns
    vectors = torch.nn.functional.normalize(torch.randn(kinds, dim, generator=draw))
    shifts = torch.randn(kinds, generator=draw, dtype=torch.float64) / 4
    which = torch.arange(rows + columns) if distinct is None else None
    if which is None:
        which = torch.randint(kinds, (rows + columns,), generator=draw)
    keys = torch.randint(-(2**62), 2**62, (rows + columns,), generator=draw)
    return (
        Pair(vectors[which[:rows]], vectors[which[rows:]]),
        Pair(shifts[which[:rows]], shifts[which[rows:]]),
        Pair(keys[:rows], keys[rows:]),
    )


def by_full_sort(
    vectors: Pair[Tensor], shifts: Pair[Tensor], k: int, keys: Pair[Tensor], seed: int
) -> set[tuple[int, int]]:
    """The whole block in float64, ties included."""
    ties = tie_vectors(keys, seed).map(as_dimensions).map(Tensor.double)
    whole = (
        vectors.source.double() @ vectors.target.double().T
        + ties.source @ ties.target.T
        + shifts.source.unsqueeze(1)
        + shifts.target
    )
    rows = {(i, j) for i, best in enumerate(_best(whole, k)) for j in best}
    return rows | {(i, j) for j, best in enumerate(_best(whole.T, k)) for i in best}


def _best(whole: Tensor, k: int) -> list[list[int]]:
    best: list[list[int]] = whole.argsort(1, descending=True)[:, :k].tolist()
    return best


def found(
    vectors: Pair[Tensor],
    shifts: Pair[Tensor],
    k: int,
    keys: Pair[Tensor],
    seed: int,
    slab_cells: int | None = None,
) -> set[tuple[int, int]]:
    rows, columns = best_of_block(vectors, shifts, k, keys, seed, slab_cells)
    pairs = list(zip(rows.tolist(), columns.tolist(), strict=True))
    assert pairs == sorted(set(pairs))  # each once, row by row
    return set(pairs)


@pytest.mark.parametrize("distinct", [None, 9, 1])
@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (50, 1), (3, 4), (90, 61)])
@pytest.mark.parametrize("k", [1, 7, 100])
def test_a_full_sort_agrees(shape: tuple[int, int], distinct: int | None, k: int) -> None:
    given = block(*shape, distinct=distinct)
    assert found(given[0], given[1], k, given[2], 5) == by_full_sort(
        given[0], given[1], k, given[2], 5
    )


@given(
    rows=st.integers(1, 80),
    columns=st.integers(1, 80),
    distinct=st.integers(1, 20),
    k=st.integers(1, 9),
    slab_cells=st.integers(1, 3000),
    seed=st.integers(0, 9),
)
@settings(max_examples=50)
def test_slabs_change_nothing(
    rows: int, columns: int, distinct: int, k: int, slab_cells: int, seed: int
) -> None:
    vectors, shifts, keys = block(rows, columns, distinct=distinct, seed=seed)
    whole = found(vectors, shifts, k, keys, seed)
    assert found(vectors, shifts, k, keys, seed, slab_cells) == whole


@pytest.mark.parametrize("distinct", [1, 3, 12])
def test_many_ties_in_slabs_of_one_row(distinct: int) -> None:
    """Products of one row are added in another order than those of many."""
    for seed in range(4):
        vectors, shifts, keys = block(150, 115, distinct=distinct, seed=seed)
        wanted = by_full_sort(vectors, shifts, 6, keys, seed)
        for slab_cells in (1, 500, 4000):
            assert found(vectors, shifts, 6, keys, seed, slab_cells) == wanted


def test_the_product_is_the_product() -> None:
    vectors, _, _ = block(7, 5)
    wanted = [[float(a.double() @ b.double()) for b in vectors.target] for a in vectors.source]
    torch.testing.assert_close(block_product(*vectors), torch.tensor(wanted))
    assert block_product(*vectors.map(Tensor.double)).dtype == torch.float64


@gpu
@pytest.mark.gpu
@pytest.mark.parametrize("distinct", [None, 50, 1])
def test_a_gpu_agrees(distinct: int | None) -> None:
    vectors, shifts, keys = block(400, 300, distinct=distinct, dim=64)
    wanted = found(vectors, shifts, 20, keys, 0)
    moved = [pair.map(lambda side: side.cuda()) for pair in (vectors, shifts, keys)]
    for slab_cells in (None, 5000):
        assert found(moved[0], moved[1], 20, moved[2], 0, slab_cells) == wanted
    assert block_product(*moved[0]).dtype == torch.float32


@pytest.mark.parametrize("width", [1, 9, 40])
@pytest.mark.parametrize("columns", [32, 320, 1280])  # fewer groups than wanted, and more
@pytest.mark.parametrize("distinct", [3, 10**6])
def test_groups_hold_the_best_columns(columns: int, width: int, distinct: int) -> None:
    width = min(width, columns)
    draw = torch.Generator().manual_seed(width)
    cells = torch.randint(distinct, (50, columns), generator=draw).float()
    chosen = best_columns(cells, width)
    assert all(len(row.unique()) == width for row in chosen)
    wanted = cells.sort(1, descending=True).values[:, :width]
    assert torch.equal(cells.gather(1, chosen).sort(1, descending=True).values, wanted)


@gpu
@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(2500, 3001), (1300, 700)])
def test_a_gpu_agrees_with_many_groups(shape: tuple[int, int]) -> None:
    vectors, shifts, keys = block(*shape, dim=64)
    wanted = found(vectors, shifts, 10, keys, 0)
    moved = [pair.map(lambda side: side.cuda()) for pair in (vectors, shifts, keys)]
    for slab_cells in (None, 100_000):
        assert found(moved[0], moved[1], 10, moved[2], 0, slab_cells) == wanted


def test_closeness_covers_what_is_rounded() -> None:
    """The products that choose differ from exact ones by less than what counts as close."""
    vectors, _, _ = block(200, 200, dim=768)
    exact = vectors.source.double() @ vectors.target.double().T
    assert float((block_product(*vectors) - exact).abs().max()) < blocks.CLOSE / 4
