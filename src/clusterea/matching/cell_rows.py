"""`CellRows`: the cells of some rows of a similarity, read in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from clusterea.numerics.block_sizes import block_size
from clusterea.numerics.cells import Entries, cuts_of_rows
from clusterea.numerics.lookup import find_in_rows
from clusterea.numerics.segments import lengths, offsets_of, owners
from clusterea.types import Pair, Similarity


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Cells of consecutive rows."""

    offsets: Tensor  # (rows + 1,) int64: where the cells of each row begin
    begin: int  # the first row
    columns: Tensor  # (cells,) int64
    values: Tensor  # (cells,) of single precision at least; -inf if an end is not open

    @property
    def end(self) -> int:
        """The row after the last one."""
        return self.begin + len(self.offsets) - 1

    def rows(self, cells: Tensor) -> Tensor:
        """(cells,): the rows of the cells at these positions."""
        return torch.searchsorted(self.offsets, cells, right=True) - 1 + self.begin

    def highest(self, values: Tensor) -> Tensor:
        """(rows,): the highest of these values of the cells of each row; -inf for none."""
        return torch.segment_reduce(
            values, "max", offsets=self.offsets, initial=-torch.inf, unsafe=True
        )

    def of_cells(self, values: Tensor) -> Tensor:
        """(cells,): the value of each cell's row."""
        return values.repeat_interleave(lengths(self.offsets), output_size=len(self.values))

    def lowest(self) -> Tensor:
        """(): the lowest value; inf without open cells."""
        if not self.values.numel():
            return self.values.new_full((), torch.inf)
        least = self.values.amin()
        if bool(least.isfinite()):
            return least
        return self.values.masked_fill(self.values == -torch.inf, torch.inf).amin()

    def take(self, cells: Tensor) -> Entries:
        """The cells at these positions."""
        return self.rows(cells), self.columns[cells], self.values[cells]


@dataclass(frozen=True, slots=True, eq=False)
class CellRows:
    """Some rows of a similarity."""

    first: int  # the first row
    offsets: Tensor  # (rows + 1,) int64: where the cells of each row begin
    columns: Tensor  # (cells,) int32 or int64
    values: Tensor  # (cells,)

    @classmethod
    def of(cls, similarity: Similarity, start: int, stop: int) -> CellRows:
        """The rows from `start` to `stop`. Their cells are not copied."""
        offsets = similarity.row_offsets[start : stop + 1]
        cells = slice(int(offsets[0]), int(offsets[-1]))
        return cls(start, offsets - offsets[0], similarity.columns[cells], similarity.values[cells])

    def __len__(self) -> int:
        return self.values.numel()

    def blocks(self, is_open: Pair[Tensor] | None = None) -> Iterator[Block]:
        """All cells in blocks of whole rows.

        Args:
            is_open: (rows,) and (all columns,) bool: whether a row and a column is open.
        """
        size = block_size("matched", self.values.device)
        # A CPU has no reductions in half precision. The conversion to float32 is exact.
        kind = torch.promote_types(self.values.dtype, torch.float32)
        has_closed = Pair(False, False) if is_open is None else is_open.map(_has_closed)
        for start, stop in cuts_of_rows(self.offsets, size):
            offsets = self.offsets[start : stop + 1]
            cells = slice(int(offsets[0]), int(offsets[-1]))
            columns, values = self.columns[cells].long(), self.values[cells].to(kind)
            block = Block(offsets - offsets[0], self.first + start, columns, values)
            if is_open is not None and has_closed.source:
                is_closed = block.of_cells(~is_open.source[start:stop])
                block = replace(block, values=block.values.masked_fill(is_closed, -torch.inf))
            if is_open is not None and has_closed.target:
                is_closed = ~is_open.target.index_select(0, columns)
                block = replace(block, values=block.values.masked_fill(is_closed, -torch.inf))
            yield block

    def only(self, is_open: Pair[Tensor]) -> CellRows:
        """The cells between open entities. For the argument see `blocks`."""
        columns, values, counts = [self.columns[:0]], [self.values[:0]], [self.offsets[:0]]
        for block in self.blocks(is_open):
            at = (block.values > -torch.inf).nonzero().flatten()
            columns.append(block.columns[at].to(self.columns))
            values.append(block.values[at].to(self.values))
            rows = block.rows(at) - block.begin
            counts.append(rows.bincount(minlength=block.end - block.begin))
        offsets = offsets_of(torch.cat(counts))
        return CellRows(self.first, offsets, torch.cat(columns), torch.cat(values))

    def without(self, pairs: Tensor) -> CellRows:
        """The cells without those of these (n, 2) pairs."""
        size = len(self.offsets) - 1
        at = self.find(pairs[(pairs[:, 0] >= self.first) & (pairs[:, 0] < self.first + size)])
        kept = torch.ones_like(self.values, dtype=torch.bool)
        kept[at[at >= 0]] = False
        counts = owners(self.offsets, len(self))[kept].bincount(minlength=size)
        return CellRows(self.first, offsets_of(counts), self.columns[kept], self.values[kept])

    def rows(self) -> Tensor:
        """(cells,): the row of each cell."""
        return owners(self.offsets, len(self)) + self.first

    def entries(self) -> Entries:
        return self.rows(), self.columns.long(), self.values

    def find(self, pairs: Tensor) -> Tensor:
        """(pairs,): the position of each pair's cell; -1 if it has none."""
        return find_in_rows(self.offsets, self.columns, pairs[:, 0] - self.first, pairs[:, 1])


def _has_closed(is_open: Tensor) -> bool:
    return not bool(is_open.all())
