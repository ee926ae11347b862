"""`best_cells_on_gpu`: the best cells of a product, in both directions, above floors from a sample.

A random sixteenth of the columns tells about how large the best cells of a row are. Its floor is so
low that about 200 cells exceed it where 66 are wanted. Then the product is computed in blocks, and
a kernel reads each block once and stores the few cells above the floor of their row or column. A
row with too few or too many of them is computed again. So the result does not depend on the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor

from clusterea.numerics.block_sizes import available, block_size, fitting_size
from clusterea.numerics.blocks import block_product
from clusterea.numerics.expected_cells import (
    CELL_BYTES,
    PASSES,
    ROOM,
    SAMPLED,
    expected_cells,
    is_large,
    room_of,
)
from clusterea.numerics.knn import BestCells, OnStep, extended
from clusterea.numerics.products import has_triton
from clusterea.numerics.rows import Rows
from clusterea.types import Pair

if TYPE_CHECKING:
    from clusterea.numerics.offer_kernel import Buckets

GROUP = 2048  # consecutive rows that are compared with the same columns
STOPPED = torch.finfo(torch.float32).max  # the floor of a column that has had too many cells

# The columns that a group of rows is compared with, by the group's number: (n,) int32, ascending.
Compared: TypeAlias = Callable[[int], Tensor]


def suits(sizes: Pair[int], width: int, device: torch.device) -> bool:
    """Whether a search of this size can be done here, and is faster than `knn.best_cells`."""
    return is_large(sizes, width) and has_triton(device)


@torch.no_grad()
def best_cells_on_gpu(
    sides: Pair[Rows],
    width: int,
    ties: Pair[Tensor],
    *,
    compared: Compared | None = None,
    progress: OnStep | None = None,
) -> Pair[BestCells]:
    """The `width` best cells of each row of both sides, as `knn.best_cells` finds them.

    Args:
        sides: (m, dim) and (n, dim) float16 on a GPU: rows of unit length.
        width: How many for each row; no more than either side has.
        ties: (m, DIMENSIONS) and (n, DIMENSIONS): from `tie_vectors`.
        compared: The columns that each `GROUP` of sources is compared with; all if not given. Then
            a row may miss some of its best cells.
        progress: Called with the number of passes done and of all.
    """
    search = _Search.of(sides, width, ties)
    found = BestCells.empty(len(sides.source), width, search.right.device)
    passes = search.passes()
    for number, groups in enumerate(passes, start=1):
        rows, best = search.best_of_rows(groups, compared)
        found.columns[rows], found.cells[rows] = best.columns, best.cells
        if progress:
            progress(number, len(passes))
    return Pair(found, search.best_of_columns())


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    source: Rows
    ties: Tensor  # of the sources
    size: int  # of the targets
    width: int
    right: Tensor  # (padded targets, dim) float16: their factors of the product
    sample: Tensor  # (n, dim): a random part of them
    columns: Buckets  # of the targets
    room: int  # cells of a source

    @classmethod
    def of(cls, sides: Pair[Rows], width: int, ties: Pair[Tensor]) -> _Search:
        from clusterea.numerics.offer_kernel import Buckets

        device, draw = ties.target.device, torch.Generator().manual_seed(0)
        right = extended(sides.target, 0, len(sides.target), ties.target)
        own, some = (
            torch.randperm(size, generator=draw)[: size // SAMPLED].to(device)
            for size in sides.map(len)
        )
        floors = _floors(
            right[: len(sides.target)], _factors(sides.source, ties.source, own), width
        )
        return cls(
            sides.source,
            ties.source,
            len(sides.target),
            width,
            right,
            right[some],
            Buckets.of(floors, ROOM * width),
            room_of(width),
        )

    def passes(self) -> list[range]:
        """The groups of rows of each pass: every eighth, or fewer where little memory is free."""
        groups = -(-len(self.source) // GROUP)
        # Of a row: its bucket, and about as much again while its best are chosen; its factors.
        each = 3 * 8 * self.room + 4 * self.right.shape[1]
        most = max(1, (available(self.right.device) or 0) // 8 // (each * GROUP))
        count = min(groups, max(PASSES, -(-groups // most)))
        return [range(first, groups, count) for first in range(count)]

    def best_of_rows(self, groups: range, compared: Compared | None) -> tuple[Tensor, BestCells]:
        """The rows of some groups, and their best cells. Those of columns are kept here."""
        from clusterea.numerics.offer_kernel import Buckets, offer

        device = self.right.device
        firsts = torch.tensor(groups).unsqueeze(1) * GROUP
        rows = (firsts + torch.arange(GROUP)).flatten()
        rows = rows[rows < len(self.source)].to(device)  # the last group may have fewer
        left = _factors(self.source, self.ties, rows)
        buckets = Buckets.of(_floors(left, self.sample, self.width), self.room)
        names = rows.int()
        for part, columns, right in self._blocks(len(rows), groups, compared):
            cells = block_product(left[part], right)
            offer(cells, Pair(names[part], columns), Pair(buckets.part(part), self.columns))
            del cells  # before the next ones are made
        self._merge_columns()
        best = _best(buckets, self.width)
        again = _failed(buckets, self.width).nonzero().flatten()
        for some in torch.split(again, self._rows_at_once(self.size)):
            cells = block_product(left[some], self.right[: self.size])
            values, at = cells.topk(self.width, dim=1, sorted=False)
            best.columns[some], best.cells[some] = at.int(), values
        return rows, best

    def _blocks(
        self, count: int, groups: range, compared: Compared | None
    ) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Rows of a pass, (n,) the numbers of the columns they meet, and these columns' factors."""
        cells = fitting_size("nearest", self.right.device, CELL_BYTES)
        if compared is None:
            columns = torch.arange(self.size, dtype=torch.int32, device=self.right.device)
            step = max(GROUP, cells // count // GROUP * GROUP)
            for start in range(0, self.size, step):
                stop = min(start + step, self.size)
                yield slice(0, count), columns[start:stop], self.right[start:stop]
            return
        for place, group in enumerate(groups):
            part = slice(place * GROUP, min((place + 1) * GROUP, count))
            for columns in torch.split(compared(group), max(1, cells // GROUP)):
                yield part, columns, self.right.index_select(0, columns)

    def _merge_columns(self) -> None:
        """Keeps only the best cells of columns whose buckets are half full."""
        columns, width = self.columns, self.width
        room = columns.cells.shape[1]
        columns.floors[columns.counts > room] = STOPPED
        is_full = (columns.counts > room // 2) & (columns.counts <= room)
        at_once = block_size("gathered", is_full.device) // room
        for some in torch.split(is_full.nonzero().flatten(), at_once):
            best = columns.cells[some].topk(width, dim=1, sorted=False)
            columns.columns[some, :width] = columns.columns[some].gather(1, best.indices)
            columns.cells[some] = -torch.inf
            columns.cells[some, :width] = best.values
            columns.floors[some] = torch.maximum(columns.floors[some], best.values.amin(1))
            columns.counts[some] = width

    def best_of_columns(self) -> BestCells:
        """The best cells of the targets, after all passes."""
        best = _best(self.columns, self.width)
        again = _failed(self.columns, self.width).nonzero().flatten()
        step = max(self.width, min(len(self.source), 1 << 18))
        for some in torch.split(again, self._rows_at_once(step)):
            parts = []
            for start in range(0, len(self.source), step):
                left = extended(self.source, start, step, self.ties)[: len(self.source) - start]
                cells = block_product(self.right[some], left)
                near = cells.topk(min(self.width, cells.shape[1]), dim=1, sorted=False)
                parts.append(BestCells((near.indices + start).int(), near.values))
            merged = BestCells.merged(parts, self.width)
            best.columns[some], best.cells[some] = merged.columns, merged.cells
        return best

    def _rows_at_once(self, columns: int) -> int:
        return max(1, fitting_size("nearest", self.right.device, 3 * CELL_BYTES) // 4 // columns)


def _factors(side: Rows, ties: Tensor, rows: Tensor) -> Tensor:
    """(rows, dim): the factors of some rows."""
    return extended(Rows([side.take(rows)]), 0, len(rows), ties[rows])[: len(rows)]


def _floors(rows: Tensor, sample: Tensor, width: int) -> Tensor:
    """(rows,): floors that about `expected_cells` of all columns exceed.

    Args:
        rows: (rows, dim).
        sample: (n, dim): a random 1 / SAMPLED of the columns.
        width: How many cells are wanted.
    """
    rank = -(-expected_cells(width) // SAMPLED)
    group = max(1, min(64, len(sample) // (16 * rank)))  # few of the best share one
    sample = sample[: len(sample) // group * group]
    floors = torch.empty(len(rows), device=rows.device)
    step = max(1, fitting_size("nearest", rows.device, 2 * CELL_BYTES) // len(sample))
    for start in range(0, len(rows), step):
        cells = block_product(rows[start : start + step], sample)
        largest = cells.view(len(cells), group, -1).amax(1)
        del cells  # before the next ones are made
        floors[start : start + step] = largest.topk(rank, dim=1, sorted=False).values.amin(1)
    return floors


def _failed(buckets: Buckets, width: int) -> Tensor:
    """(rows,) bool: whether a row has too few cells, or had too many for its bucket."""
    return (buckets.counts < width) | (buckets.counts > buckets.cells.shape[1])


def _best(buckets: Buckets, width: int) -> BestCells:
    """The best cells of each row."""
    rows, room = buckets.cells.shape
    found = BestCells.empty(rows, width, buckets.cells.device)
    step = max(1, block_size("gathered", buckets.cells.device) // room)
    for start in range(0, rows, step):
        some = slice(start, start + step)
        best = buckets.cells[some].topk(width, dim=1, sorted=False)
        found.cells[some] = best.values
        found.columns[some] = buckets.columns[some].gather(1, best.indices)
    return found
