"""Sparse operations against dense twins, where NaN stands for an absent cell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from clusterea.fusion.mean import mean, restored
from clusterea.numerics.block_sizes import BLOCK_SIZES
from clusterea.numerics.cells import (
    Empty,
    add,
    from_cells,
    from_parts,
    masked,
    min_max,
    row_order,
    sparse_csls,
    union_of_directions,
    with_small_columns,
    without_pairs,
)
from clusterea.numerics.knn import Neighbors
from clusterea.numerics.ties import pair_hash
from clusterea.types import Pair, Similarity

ROWS, COLUMNS = 5, 4
SIZES = Pair(ROWS, COLUMNS)
TIES = Pair(torch.arange(ROWS) * 7919, torch.arange(COLUMNS) * 104729)
Cells = list[tuple[int, int, float]]

# Quarters: their sums are exact. Few of them: there are ties.
some_cells = st.lists(
    st.tuples(
        st.integers(0, ROWS - 1),
        st.integers(0, COLUMNS - 1),
        st.integers(-3, 3).map(lambda quarters: quarters / 4),
    ),
    max_size=25,
)


def matrix(cells: Cells, dtype: torch.dtype = torch.float32) -> Similarity:
    rows, columns, values = zip(*cells, strict=True) if cells else ((), (), ())
    return from_cells(
        torch.tensor(rows, dtype=torch.int64),
        torch.tensor(columns, dtype=torch.int64),
        torch.tensor(values, dtype=dtype),
        SIZES,
    )


def dense(similarity: Similarity) -> Tensor:
    result = torch.full(tuple(similarity.num_entities), torch.nan)
    result[similarity.rows(), similarity.columns] = similarity.values.float()
    return result


def assert_dense(similarity: Similarity, wanted: Tensor) -> None:
    torch.testing.assert_close(dense(similarity), wanted, equal_nan=True)


@given(some_cells)
def test_from_cells_adds_cells_of_one_pair(cells: Cells) -> None:
    wanted = torch.full(tuple(SIZES), torch.nan)
    for row, column, value in cells:
        wanted[row, column] = torch.nan_to_num(wanted[row, column]) + value
    similarity = matrix(cells)
    assert similarity.num_cells == len({(row, column) for row, column, _ in cells})
    assert_dense(similarity, wanted)


def test_cells_are_added_in_the_order_given() -> None:
    cells = [(1, 1, 1e8), (1, 1, 1.0), (1, 1, -1e8)]
    assert matrix(cells).values.tolist() == [0.0]  # the 1 is lost beside 1e8
    assert matrix([cells[0], cells[2], cells[1]]).values.tolist() == [1.0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_values_keep_their_type(dtype: torch.dtype) -> None:
    similarity = matrix([(0, 1, 0.5), (0, 1, 0.25), (3, 0, 1.0)], dtype)
    results = [
        similarity,
        add(similarity, similarity),
        min_max(similarity),
        masked(similarity, torch.tensor([True, False])),
        sparse_csls(similarity, torch.zeros(ROWS, dtype=dtype), torch.zeros(COLUMNS, dtype=dtype)),
    ]
    assert {result.values.dtype for result in results} == {dtype}


@given(st.lists(some_cells, min_size=1, max_size=4))
def test_add(parts: list[Cells]) -> None:
    matrices = [matrix(cells) for cells in parts]
    stacked = torch.stack([dense(each) for each in matrices])
    wanted = stacked.nansum(0).where(~stacked.isnan().all(0), torch.nan)
    assert_dense(add(*matrices), wanted)


def test_matrices_of_other_entities_do_not_add() -> None:
    one = matrix([(0, 1, 0.5)])
    with pytest.raises(ValueError, match="of the same entities"):
        add(one, one.swap())


@given(some_cells)
def test_csls(cells: Cells) -> None:
    similarity = matrix(cells)
    row_means, column_means = torch.rand(ROWS), torch.rand(COLUMNS)
    assert_dense(
        sparse_csls(similarity, row_means, column_means),
        2 * dense(similarity) - row_means[:, None] - column_means,
    )


@given(some_cells)
def test_min_max_ends_at_0_and_1(cells: Cells) -> None:
    similarity = matrix(cells)
    scaled = min_max(similarity)
    assert torch.equal(scaled.columns, similarity.columns)
    if similarity.num_cells:
        assert scaled.values.max() == 1
        assert scaled.values.min() == (0 if similarity.values.unique().numel() > 1 else 1)  # type: ignore[no-untyped-call]
        assert torch.equal(
            scaled.values.argsort(stable=True), similarity.values.argsort(stable=True)
        )


def order_by_sorting(similarity: Similarity, seed: int) -> list[int]:
    result = []
    for row, (start, stop) in enumerate(pairwise(similarity.row_offsets.tolist())):
        columns = similarity.columns[start:stop]
        hashes = pair_hash(TIES.source[row].expand(len(columns)), TIES.target[columns], seed)
        keys = list(zip(similarity.values[start:stop].tolist(), hashes.tolist(), strict=True))
        result += [start + i for i in sorted(range(len(keys)), key=keys.__getitem__, reverse=True)]
    return result


@given(some_cells, st.sampled_from([torch.float16, torch.float32, torch.float64]))
def test_row_order(cells: Cells, dtype: torch.dtype) -> None:
    similarity = matrix(cells, dtype)
    for seed in (0, 1):
        assert row_order(similarity, TIES, seed).tolist() == order_by_sorting(similarity, seed)


def test_zeros_of_both_signs_tie() -> None:
    zeros = [(0, column, sign * 0.0) for column, sign in enumerate((1, -1, 1, -1))]
    positive = [(row, column, 0.0) for row, column, _ in zeros]
    orders = [row_order(matrix(cells), TIES, 0).tolist() for cells in (zeros, positive)]
    assert orders[0] == orders[1]


@given(some_cells, st.randoms())
def test_masked(cells: Cells, random: Random) -> None:
    similarity = matrix(cells)
    kept = torch.tensor([random.random() < 0.5 for _ in range(similarity.num_cells)]).bool()
    wanted = dense(similarity)
    wanted[similarity.rows()[~kept], similarity.columns[~kept]] = torch.nan
    assert_dense(masked(similarity, kept), wanted)


def test_ties_follow_the_keys_when_ids_are_shuffled() -> None:
    similarity = matrix([(row, column, 0.5) for row in range(ROWS) for column in range(COLUMNS)])
    new = Pair(torch.tensor([3, 0, 4, 1, 2]), torch.tensor([2, 0, 3, 1]))
    keys = Pair(TIES.source[new.source], TIES.target[new.target])

    def by_row(ties: Pair[Tensor]) -> Tensor:
        return similarity.columns[row_order(similarity, ties, 0)].reshape(ROWS, COLUMNS)

    assert torch.equal(new.target[by_row(keys)], by_row(TIES)[new.source])


class TestBothWays:
    def test_by_hand(self) -> None:
        of_sources = Neighbors(torch.tensor([[1], [0]]), torch.tensor([[0.5], [0.25]]))
        of_targets = Neighbors(
            torch.tensor([[0], [0], [1]]), torch.tensor([[0.125], [0.5], [0.75]])
        )
        wanted = torch.tensor([[0.125, 1.0, torch.nan], [0.25, torch.nan, 0.75]])
        assert_dense(union_of_directions(Pair(of_sources, of_targets)), wanted)
        wanted[0, 1] = 0.5
        assert_dense(union_of_directions(Pair(of_sources, of_targets), twice=False), wanted)


@given(some_cells, some_cells, st.integers(1, 30))
def test_slabs_change_nothing(one: Cells, other: Cells, slab_cells: int) -> None:
    whole = add(matrix(one), matrix(other))
    in_slabs = add(matrix(one), matrix(other), slab_cells=slab_cells)
    assert torch.equal(in_slabs.row_offsets, whole.row_offsets)
    assert_dense(in_slabs, dense(whole))


@settings(max_examples=30)
@given(some_cells, some_cells, st.integers(1, 9))
def test_nor_does_the_room_for_the_result(one: Cells, other: Cells, slab_cells: int) -> None:
    """Every operation on all cells, with columns of 32 bits and room that the caller makes."""
    cells, more = matrix(one), matrix(other)
    pairs = np.array([[0, 1], [3, 3], [4, 0]])
    means = Pair(torch.arange(ROWS) / 4, torch.arange(COLUMNS) / 2)
    seeds = pairs[:1]

    def room(shape: Sequence[int], kind: torch.dtype) -> Tensor:
        return torch.full(tuple(shape), 7, dtype=kind)

    def results(cells: Similarity, empty: Empty | None) -> list[Similarity]:
        return [
            add(cells, more, empty=empty),
            min_max(cells, empty),
            sparse_csls(cells, means.source, means.target, empty),
            without_pairs(cells, pairs, empty),
            mean([cells, more], seeds, empty),
            restored(cells, torch.from_numpy(pairs), empty),
        ]

    wanted = results(cells, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BLOCK_SIZES["sums"], "cpu", slab_cells)
        found = results(with_small_columns(cells), room)
    for own, others in zip(found, wanted, strict=True):
        assert own.columns.dtype == torch.int32
        assert torch.equal(own.row_offsets, others.row_offsets)
        assert torch.equal(own.columns.long(), others.columns)
        assert torch.equal(own.values, others.values)
    kept = dense(cells)
    kept[tuple(torch.from_numpy(pairs).T)] = torch.nan
    assert_dense(wanted[3], kept)


@given(some_cells, st.lists(st.integers(0, 3), min_size=ROWS, max_size=ROWS))
def test_parts_with_no_row_in_common(cells: Cells, part_of: list[int]) -> None:
    whole = matrix(cells)
    order = torch.randperm(whole.num_cells, generator=torch.Generator().manual_seed(0))
    rows, columns, values = (
        each[order] for each in (whole.rows(), whole.columns, whole.values)
    )  # in no order
    owner = torch.tensor(part_of)[rows]
    parts = [(rows[owner == at], columns[owner == at], values[owner == at]) for at in range(4)]
    found = from_parts(parts, SIZES)
    assert torch.equal(found.row_offsets, whole.row_offsets)
    assert_dense(found, dense(whole))
    assert not parts


def test_no_parts() -> None:
    with pytest.raises(ValueError, match=r"parts must be one or more\. Got none\."):
        from_parts([], SIZES)


@pytest.mark.parametrize("sizes", [Pair(0, 0), Pair(0, 3), Pair(3, 0), Pair(3, 3)])
def test_empty(sizes: Pair[int]) -> None:
    none = torch.zeros(0, dtype=torch.int64)
    similarity = from_cells(none, none, torch.zeros(0), sizes)
    ties = sizes.map(torch.arange)
    means = sizes.map(torch.zeros)
    for result in (
        from_parts([(none, none, torch.zeros(0))], sizes),
        add(similarity, similarity),
        sparse_csls(similarity, means.source, means.target),
        min_max(similarity),
        masked(similarity, torch.zeros(0).bool()),
    ):
        assert result.num_cells == 0
        assert result.num_entities == sizes
    assert row_order(similarity, ties, 0).numel() == 0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_agrees_to_the_last_bit() -> None:
    draw = torch.Generator().manual_seed(0)
    sizes, cells = Pair(1000, 500), 100_000
    rows = torch.randint(sizes.source, (cells,), generator=draw)
    columns = torch.randint(sizes.target, (cells,), generator=draw)
    values = torch.rand(cells, generator=draw)
    ties = sizes.map(lambda size: torch.arange(size) * 7919)
    here = from_cells(rows, columns, values, sizes)
    there = from_cells(rows.cuda(), columns.cuda(), values.cuda(), sizes)
    on_gpu = ties.map(lambda keys: keys.cuda())
    assert torch.equal(here.values, there.values.cpu())
    part = here.rows(), here.columns, here.values
    parts = [tuple(each.cuda() for each in part)]
    assert torch.equal(from_parts(parts, sizes).values.cpu(), here.values)  # type: ignore[arg-type]
    twice = add(there, there, slab_cells=999)
    assert torch.equal(twice.values.cpu(), add(here, here).values)
    assert torch.equal(twice.columns.cpu(), here.columns)
    assert torch.equal(row_order(here, ties, 0), row_order(there, on_gpu, 0).cpu())
    few = here.values > 0.9
    assert torch.equal(masked(here, few).columns, masked(there, few.cuda()).columns.cpu())
