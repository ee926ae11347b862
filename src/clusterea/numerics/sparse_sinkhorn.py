"""Sinkhorn on the cells of a sparse matrix, in shards of rows. Absent cells count as zero.

The cells are held twice, by rows and by columns. A round scales all rows, then all columns: each
shard computes the potentials of its rows from those of all columns, or the other way round. The
order of sums is that of the cells, so the result does not depend on the shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

from clusterea.errors import InputError
from clusterea.numerics.segments import lengths, offsets_of, owners, segment_sum
from clusterea.numerics.sinkhorn import SAME
from clusterea.numerics.sparse_matmul import SparseMatrix
from clusterea.types import Similarity

# With an outside option of cosine o, log u and log v are at most (1/2 - o) / T, and the largest sum
# bounds them from below. If the similarities, divided by T, span no more than this, all numbers lie
# within e^±700, which float64 holds. Without options there is no bound: in a part of the matrix
# with more rows than columns, potentials grow in every round.
WIDEST = 200.0


def value_range(cells: Similarity, temperature: float) -> tuple[float, float] | None:
    """The least and the largest value divided by the temperature; None without cells.

    Raises:
        InputError: A value is NaN or infinite.
    """
    if not cells.num_cells:
        return None
    values = cells.values.double() / temperature
    if not bool(values.isfinite().all()):
        raise InputError("a similarity must be a finite number. Got one that is not.")
    low, high = values.aminmax()
    return float(low), float(high)


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums of exp(value + potential) over the cells of each row, or of each column, of a shard.

    As products with the kernel exp(value - shift), if float64 can hold it: many times faster than
    in the log domain.
    """

    matrix: SparseMatrix  # the rows or columns of this shard × all of the other side
    shift: float | None  # None: values, for sums in the log domain

    @classmethod
    def of(cls, matrix: SparseMatrix, temperature: float, shift: float | None) -> Sums:
        values = matrix.values.double() / temperature
        values = values if shift is None else (values - shift).exp()
        return cls(SparseMatrix(matrix.offsets, matrix.columns, values, matrix.num_columns), shift)

    def is_empty(self) -> Tensor:
        """(rows,) bool: whether a row has no cells."""
        return lengths(self.matrix.offsets) == 0

    def logs(self, potentials: Tensor, is_empty: Tensor) -> Tensor:
        """(rows,): the log of the sum of each row's cells; -inf for a row without cells.

        Args:
            potentials: (columns,).
            is_empty: (columns,) bool: whether a column has no cells in any shard.
        """
        if self.shift is None:
            return self._in_log_domain(potentials)
        # The potential of an empty column must not set the scale for the others.
        potentials = potentials.masked_fill(is_empty, -torch.inf)
        largest = potentials.max()
        product = self.matrix.apply((potentials - largest).exp().unsqueeze(1)).squeeze(1)
        return product.log() + largest + self.shift

    def _in_log_domain(self, potentials: Tensor) -> Tensor:
        matrix = self.matrix
        terms = matrix.values + potentials.index_select(0, matrix.columns)
        owner = owners(matrix.offsets, len(terms))
        largest = terms.new_full((matrix.num_rows,), -torch.inf)
        largest.scatter_reduce_(0, owner, terms, "amax")
        sums = segment_sum((terms - largest.index_select(0, owner)).exp(), matrix.offsets)
        return sums.log() + largest


def row_sums(cells: Similarity, temperature: float, shift: float | None) -> Sums:
    """The sums over the cells of each row of a shard."""
    matrix = SparseMatrix(cells.row_offsets, cells.columns, cells.values, cells.num_entities.target)
    return Sums.of(matrix, temperature, shift)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnCells:
    """Cells of some columns: the part of them that is in one shard of rows."""

    rows: Tensor  # (cells,) int64, in the whole matrix
    columns: Tensor  # (cells,) int64, counted from the first of these columns
    values: Tensor  # (cells,)


def cells_of_columns(
    cells: Similarity, start: int, bounds: Sequence[int]
) -> tuple[ColumnCells, ...]:
    """The cells of a shard of rows, for each shard of columns.

    Args:
        cells: Of the rows from `start` on.
        start: The first row.
        bounds: Where the shards of columns begin, and where the last one ends.
    """
    rows = cells.rows() + start
    if len(bounds) == 2:
        return (ColumnCells(rows, cells.columns, cells.values),)
    found = []
    for begin, end in pairwise(bounds):
        at = ((cells.columns >= begin) & (cells.columns < end)).nonzero().flatten()
        found.append(ColumnCells(rows[at], cells.columns[at] - begin, cells.values[at]))
    return tuple(found)


def column_sums(
    size: int, num_rows: int, temperature: float, shift: float | None, *parts: ColumnCells
) -> Sums:
    """The sums over the cells of each column of a shard.

    Args:
        size: The number of columns of the shard.
        num_rows: Of the whole matrix.
        temperature: T.
        shift: As in `Sums`.
        *parts: The columns' cells in each shard of rows.
    """
    columns = torch.cat([part.columns for part in parts])
    order = columns.argsort(stable=True)
    matrix = SparseMatrix(
        offsets_of(columns.bincount(minlength=size)),
        torch.cat([part.rows for part in parts])[order],
        torch.cat([part.values for part in parts])[order],
        num_rows,
    )
    return Sums.of(matrix, temperature, shift)


def new_potentials(
    sums: Sums, options: Tensor, is_empty: Tensor, others: Sequence[Tensor]
) -> Tensor:
    """(rows,) float64: log u of the rows of a shard, from log v of all columns.

    Args:
        sums: Over the cells of each row.
        options: (rows,): the logarithms of the outside options.
        is_empty: (columns,) bool: columns without cells.
        others: The potentials of all columns, in parts.
    """
    return -torch.logaddexp(sums.logs(torch.cat(list(others)), is_empty), options)


def outside_options(outside: Tensor | None, size: int, temperature: float) -> Tensor:
    """(size,) float64: the logarithms of the outside options of one side; -inf for none.

    The kernel is exp((S - 1) / T). Half of its constant is in the potentials of each side.

    Raises:
        InputError: An option is NaN or infinite.
    """
    if outside is None:
        return torch.full((size,), -torch.inf, dtype=torch.float64)
    if not bool(outside.isfinite().all()):
        raise InputError("outside must be finite, but holds NaN or infinity.")
    return (outside.double() - SAME / 2) / temperature


def first_potentials(size: int, temperature: float) -> Tensor:
    """(size,) float64: as in the dense form, u and v start at 1."""
    return torch.full((size,), -SAME / 2 / temperature, dtype=torch.float64)


def with_potentials(
    cells: Similarity, temperature: float, own: Tensor, others: Tensor
) -> Similarity:
    """The cells of a shard scaled by the potentials of its rows and of all columns."""
    scaled = cells.values.double() / temperature
    scaled += own.index_select(0, cells.rows())
    scaled += others.index_select(0, cells.columns)
    return replace(cells, values=scaled.exp().float())
