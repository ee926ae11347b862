"""The cells of candidates against a loop over the neighbors of both sides, in any cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from clusterea.numerics.candidates import (
    EntityCells,
    candidate_cells,
    cell_positions,
    cells_of_entities,
    cells_of_neighbors,
    entity_offsets,
)
from clusterea.numerics.knn import Nearest, Neighbors
from clusterea.types import Pair, Similarity

Cells = dict[tuple[int, int], float]
LOWEST = -4.0


def nearest(values: Tensor, k: int) -> Nearest:
    """The k best of each row and of each column."""

    def best(of: Tensor) -> Neighbors:
        found = of.topk(min(k, of.shape[1]), dim=1)
        return Neighbors(found.indices, found.values)

    return Pair(best(values), best(values.T))


def listed(found: Nearest) -> Cells:
    """Each pair that a row or a column found, once."""
    cells: Cells = {}
    for row, (columns, values) in enumerate(zip(*both(found.source), strict=True)):
        cells |= {(row, column): value for column, value in zip(columns, values, strict=True)}
    for column, (rows, values) in enumerate(zip(*both(found.target), strict=True)):
        cells |= {(row, column): value for row, value in zip(rows, values, strict=True)}
    return cells


def both(found: Neighbors) -> tuple[list[list[int]], list[list[float]]]:
    return found.indices.tolist(), found.values.tolist()


def cells_of(similarity: Similarity, start: int = 0) -> Cells:
    cells = zip((similarity.rows() + start).tolist(), similarity.columns.tolist(), strict=True)
    return dict(zip(cells, similarity.values.tolist(), strict=True))


@st.composite
def cuts(draw: st.DrawFn, size: int) -> list[int]:
    """Shards, none of which is empty unless all are."""
    inner = draw(st.sets(st.integers(1, max(size - 1, 1)), max_size=4)) if size > 1 else set()
    return [0, *sorted(inner), size]


@st.composite
def situations(draw: st.DrawFn) -> tuple[Tensor, Pair[list[int]], int]:
    rows, columns = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    values = torch.from_numpy(rng.permutation(rows * columns).reshape(rows, columns)).float()
    values /= rows * columns
    values[torch.from_numpy(rng.random((rows, columns)) < 0.2)] = LOWEST
    return values, Pair(draw(cuts(rows)), draw(cuts(columns))), draw(st.integers(1, 10))


def sharded(found: Nearest, bounds: Pair[list[int]]) -> list[Similarity]:
    pieces = [
        cells_of_neighbors(found.target.between(start, stop), start, bounds.source)
        for start, stop in pairwise(bounds.target)
    ]
    return [
        candidate_cells(
            found.source.between(start, stop),
            bounds.target[-1],
            LOWEST,
            [piece[number] for piece in pieces],
        )
        for number, (start, stop) in enumerate(pairwise(bounds.source))
    ]


class TestCandidates:
    @given(situations())
    def test_each_pair_once_and_none_that_is_lowest(
        self, given: tuple[Tensor, Pair[list[int]], int]
    ) -> None:
        values, bounds, k = given
        found = nearest(values, k)
        wanted = {pair: value for pair, value in listed(found).items() if value > LOWEST}
        cells: Cells = {}
        for (start, stop), part in zip(
            pairwise(bounds.source), sharded(found, bounds), strict=True
        ):
            assert part.num_entities == Pair(stop - start, bounds.target[-1])
            cells |= cells_of(part, start)
        assert cells == wanted

    @given(situations())
    def test_neighbors_of_columns_go_to_the_shards_of_their_rows(
        self, given: tuple[Tensor, Pair[list[int]], int]
    ) -> None:
        values, bounds, k = given
        found = nearest(values, k).target
        seen: list[tuple[int, int, float]] = []
        for start, stop in pairwise(bounds.target):
            parts = cells_of_neighbors(found.between(start, stop), start, bounds.source)
            for (begin, end), (rows, columns, some) in zip(
                pairwise(bounds.source), parts, strict=True
            ):
                assert all(0 <= row < end - begin for row in rows.tolist())
                assert all(start <= column < stop for column in columns.tolist())
                seen += zip((rows + begin).tolist(), columns.tolist(), some.tolist(), strict=True)
        wanted = [
            (row, column, value)
            for column, (rows, some) in enumerate(zip(*both(found), strict=True))
            for row, value in zip(rows, some, strict=True)
        ]
        assert sorted(seen) == sorted(wanted)

    def test_a_side_without_rows(self) -> None:
        nothing = Neighbors(torch.empty(0, 0, dtype=torch.int64), torch.empty(0, 0))
        alone = Neighbors(torch.empty(3, 0, dtype=torch.int64), torch.empty(3, 0))
        (piece,) = cells_of_neighbors(nothing, 0, [0, 3])
        assert candidate_cells(alone, 0, LOWEST, [piece]).num_entities == Pair(3, 0)
        (piece,) = cells_of_neighbors(alone, 0, [0, 0])
        assert candidate_cells(nothing, 3, LOWEST, [piece]).num_cells == 0


class TestEntities:
    @given(situations(), st.integers(0, 99))
    def test_shards_are_put_together_by_entity(
        self, given: tuple[Tensor, Pair[list[int]], int], seed: int
    ) -> None:
        values, bounds, k = given
        found = nearest(values, k)
        rng = np.random.default_rng(seed)
        sizes = Pair(*values.shape).map(lambda size: size + 4)  # some are decided
        entities = Pair(*values.shape).zip(sizes)
        source, target = entities.map(
            lambda side: torch.from_numpy(rng.permutation(side[1])[: side[0]])
        )
        parts = [cells_of_entities(part, target) for part in sharded(found, bounds)]
        offsets = entity_offsets(source, torch.cat([part.counts for part in parts]), sizes.source)
        columns, numbers = torch.full((int(offsets[-1]),), -1), torch.zeros(int(offsets[-1]))
        for (start, stop), part in zip(pairwise(bounds.source), parts, strict=True):
            at = cell_positions(source[start:stop], part.counts, offsets)
            columns[at], numbers[at] = part.columns, part.values
        assert_sorted(parts)
        assert cells_of(Similarity(offsets, columns, numbers, sizes)) == {
            (int(source[row]), int(target[column])): value
            for (row, column), value in listed(found).items()
            if value > LOWEST
        }


def assert_sorted(parts: list[EntityCells]) -> None:
    for part in parts:
        for row in torch.split(part.columns, part.counts.tolist()):
            assert row.tolist() == sorted(set(row.tolist()))
