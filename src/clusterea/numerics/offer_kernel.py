"""`offer`: takes the cells of a block that exceed a floor, those of rows and columns in one pass.

Import it only where there is a CUDA device: it needs Triton, which comes with torch for CUDA.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from clusterea.types import Pair

ROWS, COLUMNS = 16, 512  # cells that one warp looks at, row by row


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """Room for the largest cells of some rows. If `counts` exceeds the room, cells are missing."""

    floors: Tensor  # (rows,) float32: only larger cells are stored
    counts: Tensor  # (rows,) int32: cells so far
    columns: Tensor  # (rows, room) int32
    cells: Tensor  # (rows, room) float32: -inf where there is none

    @classmethod
    def of(cls, floors: Tensor, room: int) -> Buckets:
        """Empty ones."""
        size, device = len(floors), floors.device
        return cls(
            floors,
            torch.zeros(size, dtype=torch.int32, device=device),
            torch.zeros(size, room, dtype=torch.int32, device=device),
            torch.full((size, room), -torch.inf, device=device),
        )

    def part(self, rows: slice) -> Buckets:
        """Those of some rows; they share the memory."""
        return Buckets(self.floors[rows], self.counts[rows], self.columns[rows], self.cells[rows])


def offer(cells: Tensor, names: Pair[Tensor], buckets: Pair[Buckets]) -> None:
    """Stores the cells of a block that exceed the floor of their row or column, in any order.

    Args:
        cells: (rows, columns) float32 on a GPU, contiguous.
        names: (rows,) int32: what a row is called in the buckets of columns; and (columns,) int32:
            what a column is called, which is also the number of its bucket.
        buckets: Those of the rows of the block, and those of all columns.
    """
    (own, other), (count, width) = buckets, cells.shape
    with torch.cuda.device_of(cells):  # else a kernel runs on the current GPU
        _offer[(triton.cdiv(count, ROWS), triton.cdiv(width, COLUMNS))](
            cells,
            count,
            width,
            names.source,
            names.target,
            own.floors,
            own.counts,
            own.columns,
            own.cells,
            own.cells.shape[1],
            other.floors,
            other.counts,
            other.columns,
            other.cells,
            other.cells.shape[1],
            rows=ROWS,
            columns=COLUMNS,
            num_warps=1,
        )


@triton.jit
def _offer(
    cells,
    count,
    width,
    row_names,
    column_names,
    row_floors,
    row_counts,
    row_columns,
    row_cells,
    row_room,
    column_floors,
    column_counts,
    column_rows,
    column_cells,
    column_room,
    rows: tl.constexpr,
    columns: tl.constexpr,
):
    place = tl.program_id(1) * columns + tl.arange(0, columns)
    is_column = place < width
    name = tl.load(column_names + place, mask=is_column, other=0).to(tl.int64)
    of_column = tl.load(column_floors + name, mask=is_column, other=float("inf"))
    first = tl.program_id(0).to(tl.int64) * rows
    for start in range(0, rows, 4):
        row = first + start
        # Four rows are read before the first is looked at, since reading takes most of the time.
        at = cells + row * width + place
        one = tl.load(at, mask=is_column & (row < count), other=-float("inf"))
        two = tl.load(at + width, mask=is_column & (row + 1 < count), other=-float("inf"))
        three = tl.load(at + 2 * width, mask=is_column & (row + 2 < count), other=-float("inf"))
        four = tl.load(at + 3 * width, mask=is_column & (row + 3 < count), other=-float("inf"))
        for number in tl.static_range(4):
            if number == 0:
                values = one
            elif number == 1:
                values = two
            elif number == 2:
                values = three
            else:
                values = four
            own = row + number
            of_row = tl.load(row_floors + own, mask=own < count, other=float("inf"))
            # Nearly all cells end here.
            if tl.max(values - tl.minimum(of_column, of_row), 0) > 0:
                _keep(
                    values, values > of_row, own, name, row_counts, row_columns, row_cells, row_room
                )
                called = tl.load(row_names + own)
                _keep(
                    values,
                    values > of_column,
                    name,
                    called,
                    column_counts,
                    column_rows,
                    column_cells,
                    column_room,
                )


@triton.jit
def _keep(values, above, bucket, name, counts, columns, cells, room):
    """Adds the values above a floor to buckets: one for all, or one for each."""
    bucket = bucket + tl.zeros_like(values).to(tl.int64)
    slots = tl.atomic_add(
        counts + bucket, tl.full(values.shape, 1, dtype=tl.int32), mask=above, sem="relaxed"
    )
    fits = above & (slots < room)
    at = bucket * room + slots
    tl.store(columns + at, (name + tl.zeros_like(values).to(tl.int64)).to(tl.int32), mask=fits)
    tl.store(cells + at, values, mask=fits)
