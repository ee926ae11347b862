"""`Firsts`: the first cell of each entity, in the order that matching follows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clusterea.matching.cell_rows import CellRows
from clusterea.numerics.cells import Entries
from clusterea.numerics.ties import pair_hash
from clusterea.types import Pair

_LOWEST = torch.iinfo(torch.int64).min


@dataclass(frozen=True, slots=True, eq=False)
class Firsts:
    """What some rows have to choose from."""

    count: int  # cells
    firsts: Pair[Entries]  # the first cell of each row, and of each column, that has a cell

    @classmethod
    def of(
        cls, cells: CellRows, is_open: Pair[Tensor] | None, keys: Pair[Tensor], seed: int
    ) -> Firsts:
        """Those of the cells between open entities, or of all cells.

        Args:
            cells: The cells of some rows.
            is_open: (rows,) and (all columns,) bool.
            keys: (entities,) int64 of each side.
            seed: Of the hashes.
        """
        kind = torch.promote_types(cells.values.dtype, torch.float32)
        width = keys.target.numel()
        highest = torch.full((width,), -torch.inf, dtype=kind, device=cells.values.device)
        of_rows, of_columns, count = [], [], 0
        for block in cells.blocks(is_open):
            count += int((block.values > -torch.inf).sum())
            highest.scatter_reduce_(0, block.columns, block.values, "amax")
            best = block.of_cells(block.highest(block.values))
            of_rows.append(block.take(_equal(block.values, best)))
        for block in cells.blocks(is_open):
            best = highest.index_select(0, block.columns)
            of_columns.append(block.take(_equal(block.values, best)))
        nothing = highest[:0].long(), highest[:0].long(), highest[:0]
        rows, columns = (_joined([nothing, *parts]) for parts in (of_rows, of_columns))
        return cls(
            count,
            Pair(
                _first_of_each(rows, rows[0], keys.source.numel(), keys, seed),
                _first_of_each(columns, columns[1], width, keys, seed),
            ),
        )

    @classmethod
    def of_rest(
        cls, cells: CellRows, is_open: Pair[Tensor], keys: Pair[Tensor], seed: int
    ) -> tuple[CellRows, Firsts]:
        """The cells between open entities, and `of` them."""
        left = cells.only(is_open)
        return left, cls.of(left, None, keys, seed)


@dataclass(frozen=True, slots=True, eq=False)
class FirstOfColumns:
    """The first cell of each column, in the rows that were added."""

    rows: Tensor  # (columns,) int64; -1 for none
    values: Tensor  # (columns,)

    @classmethod
    def none(cls, like: Tensor, width: int) -> FirstOfColumns:
        """Of no rows. Values are of the type of `like`."""
        rows = torch.full((width,), -1, device=like.device)
        return cls(rows, like.new_full((width,), -torch.inf))

    def add(self, cells: Entries, keys: Pair[Tensor], seed: int) -> None:
        """Adds the first cells of columns in later rows, of each column one."""
        rows, columns, values = cells
        before = self.values[columns]
        is_first = values > before
        at = (values == before).nonzero().flatten()
        of_target = keys.target[columns[at]]
        is_first[at] = pair_hash(keys.source[rows[at]], of_target, seed) > pair_hash(
            keys.source[self.rows[columns[at]]], of_target, seed
        )
        columns = columns[is_first]
        self.rows[columns], self.values[columns] = rows[is_first], values[is_first]

    def cells(self) -> Entries:
        columns = (self.rows >= 0).nonzero().flatten()
        return self.rows[columns], columns, self.values[columns]


def _equal(values: Tensor, highest: Tensor) -> Tensor:
    """The positions of the open cells that have the highest value."""
    return ((values == highest) & (values > -torch.inf)).nonzero().flatten()


def _joined(parts: list[Entries]) -> Entries:
    rows, columns, values = (torch.cat(each) for each in zip(*parts, strict=True))
    return rows, columns, values


def _first_of_each(
    cells: Entries, owners: Tensor, entities: int, keys: Pair[Tensor], seed: int
) -> Entries:
    """The first cell of each owner, of cells that have their owner's highest value."""
    rows, columns, values = cells
    is_tied = owners.bincount(minlength=entities)[owners] > 1
    tied = is_tied.nonzero().flatten()
    if not len(tied):
        return cells
    # Hashes are computed only where values tie.
    hashes = pair_hash(keys.source[rows[tied]], keys.target[columns[tied]], seed)
    owner = owners[tied]
    largest = hashes.new_full((entities,), _LOWEST).scatter_reduce_(0, owner, hashes, "amax")
    is_last = hashes == largest[owner]
    firsts = tied.new_full((entities,), len(owners))
    firsts.scatter_reduce_(0, owner[is_last], tied[is_last], "amin")
    kept = ~is_tied
    kept[firsts[firsts < len(owners)]] = True
    return rows[kept], columns[kept], values[kept]
