"""The cells of candidates: the neighbors of both directions as one matrix, in shards of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from clusterea.numerics.cells import from_parts, joined, masked
from clusterea.numerics.knn import Neighbors
from clusterea.numerics.segments import offsets_of, ranges
from clusterea.types import Pair, Similarity


def cells_of_neighbors(
    found: Neighbors, start: int, bounds: Sequence[int]
) -> tuple[tuple[Tensor, Tensor, Tensor], ...]:
    """The pairs that a shard of the other side found, for each shard of rows.

    Args:
        found: The neighbors of the columns from `start` on: rows.
        start: The first of these columns.
        bounds: Where the shards of rows begin, and where the last one ends.

    Returns:
        Rows, counted from the first of their shard, columns and values.
    """
    count, width = found.indices.shape
    rows = found.indices.flatten()
    columns = torch.arange(start, start + count, device=rows.device).repeat_interleave(width)
    values = found.values.flatten()
    if len(bounds) == 2:
        return ((rows, columns, values),)
    parts = []
    for begin, end in pairwise(bounds):
        at = ((rows >= begin) & (rows < end)).nonzero().flatten()
        parts.append((rows[at] - begin, columns[at], values[at]))
    return tuple(parts)


def candidate_cells(
    found: Neighbors,
    num_columns: int,
    lowest: float,
    parts: Sequence[tuple[Tensor, Tensor, Tensor]],
) -> Similarity:
    """The cells of a shard of rows: pairs that a row or a column found.

    Args:
        found: The neighbors of the rows.
        num_columns: Of the whole matrix.
        lowest: Cells that are not above it are left out.
        parts: From `cells_of_neighbors`, one for each shard of the other side.
    """
    count, width = found.indices.shape
    rows = torch.arange(count, device=found.indices.device).repeat_interleave(width)
    sizes = Pair(count, num_columns)
    own = from_parts([(rows, found.indices.flatten(), found.values.flatten())], sizes)
    rows, columns, values = (torch.cat(list(each)) for each in zip(*parts, strict=True))
    cells = joined(own, from_parts([(rows, columns, values)], sizes))
    is_possible = cells.values > lowest
    return cells if bool(is_possible.all()) else masked(cells, is_possible)


@dataclass(frozen=True, slots=True, eq=False)
class EntityCells:
    """The cells of a shard over entities: row after row, columns ascending."""

    counts: Tensor  # (rows,) int64
    columns: Tensor  # (cells,) int64: entities
    values: Tensor  # (cells,)


def cells_of_entities(cells: Similarity, of_column: Tensor) -> EntityCells:
    """The cells of a shard with entities as columns.

    Args:
        cells: Over the rows of the undecided entities of both sides.
        of_column: (columns,): the entity of each.
    """
    columns = of_column.to(cells.columns.device)[cells.columns]
    order = (cells.rows() * (int(columns.max()) + 1 if len(columns) else 1) + columns).argsort()
    return EntityCells(cells.row_offsets.diff(), columns[order], cells.values[order])


def cell_positions(entities: Tensor, counts: Tensor, offsets: Tensor) -> Tensor:
    """(cells,) int64: where the cells of these rows go in the matrix over all entities.

    Args:
        entities: (rows,): the entity of each row.
        counts: (rows,): the cells of each row.
        offsets: (entities + 1,): where the cells of each entity begin.
    """
    return ranges(offsets[entities], counts)[1]


def entity_offsets(entities: Tensor, counts: Tensor, size: int) -> Tensor:
    """(size + 1,): where the cells of each entity begin, from the counts of some entities."""
    return offsets_of(counts.new_zeros(size).index_put_((entities,), counts))
