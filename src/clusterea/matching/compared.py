"""`Compared`: the scores of links beside those of their rivals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from clusterea.matching.cell_rows import CellRows
from clusterea.types import Pair


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """The scores of links, of single precision at least."""

    score: Tensor  # (links,): the least of all without a cell; 0 without any cells
    row: Tensor  # (links,): the best other score of the row; -inf for none
    column: Tensor  # (links,): of the column
    least: Tensor  # (): of all cells; inf for none


class Scores(Protocol):
    """A similarity that links are compared in."""

    def compared(self, links: Tensor) -> Compared:
        """The scores of these (n, 2) links, and of their rivals."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class BestTwo:
    """The highest and the second highest value of some entities; -inf for none."""

    highest: Tensor  # (entities,)
    second: Tensor  # (entities,): as high as the highest if two cells have it

    @classmethod
    def none(cls, like: Tensor, size: int) -> BestTwo:
        return cls(*(like.new_full((size,), -torch.inf) for _ in range(2)))

    def add(self, entities: Tensor, others: BestTwo) -> None:
        """Adds the values of other cells of these entities, which are distinct."""
        one, two = self.highest[entities], others.highest
        below = torch.minimum(one, two)
        more = torch.maximum(self.second[entities], others.second)
        self.second[entities] = torch.maximum(below, more)
        self.highest[entities] = torch.maximum(one, two)

    def rivals(self, entities: Tensor, score: Tensor, is_cell: Tensor) -> Tensor:
        """(links,): the best value of the entity of each link, beside its own."""
        highest = self.highest[entities]
        return torch.where(is_cell & (score == highest), self.second[entities], highest)


@dataclass(frozen=True, slots=True, eq=False)
class ComparedRows:
    """What some rows know of the links that begin in them."""

    least: Tensor  # ()
    score: Tensor  # (links,)
    is_cell: Tensor  # (links,) bool
    row: Tensor  # (links,): the best other score of the row
    columns: Tensor  # (n,) int64: those with a cell
    best: BestTwo  # of these columns

    @classmethod
    def of(
        cls, cells: CellRows, is_open: Pair[Tensor] | None, links: Tensor, width: int
    ) -> ComparedRows:
        """Those of the cells between open entities, or of all cells.

        Args:
            cells: The cells of some rows.
            is_open: (rows,) and (all columns,) bool.
            links: (n, 2): of these rows.
            width: The number of all columns.
        """
        kind = torch.promote_types(cells.values.dtype, torch.float32)
        values = cells.values[:0].to(kind)
        columns, least = BestTwo.none(values, width), values.new_full((), torch.inf)
        rows = BestTwo.none(values, len(cells.offsets) - 1)
        for block in cells.blocks(is_open):
            columns.highest.scatter_reduce_(0, block.columns, block.values, "amax")
            own = slice(block.begin - cells.first, block.end - cells.first)
            rows.highest[own] = block.highest(block.values)
            is_high = block.values == block.of_cells(rows.highest[own])
            below = block.values.masked_fill(is_high, -torch.inf)
            shared = block.rows(is_high.nonzero().flatten())
            count = (shared - block.begin).bincount(minlength=block.end - block.begin)
            rows.second[own] = torch.where(count > 1, rows.highest[own], block.highest(below))
            least = torch.minimum(least, block.lowest())
        count = torch.zeros(width, dtype=torch.int64, device=values.device)
        for block in cells.blocks(is_open):
            is_high = block.values == columns.highest.index_select(0, block.columns)
            high = block.columns[is_high.nonzero().flatten()]
            count.index_add_(0, high, torch.ones_like(high))
            below = block.values.masked_fill(is_high, -torch.inf)
            columns.second.scatter_reduce_(0, block.columns, below, "amax")
        at = columns.highest.isfinite().nonzero().flatten()
        highest = columns.highest[at]
        second = torch.where(count[at] > 1, highest, columns.second[at])
        found = cells.find(links)
        is_cell = found >= 0
        score = values.new_zeros(len(links))
        score[is_cell] = cells.values[found[is_cell]].to(kind)
        row = rows.rivals(links[:, 0] - cells.first, score, is_cell)
        return cls(least, score, is_cell, row, at, BestTwo(highest, second))
