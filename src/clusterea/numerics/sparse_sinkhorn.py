"""Sinkhorn on the cells of a sparse matrix. Absent cells count as zero."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from clusterea.errors import InputError
from clusterea.numerics.segments import lengths, owners, segment_sum
from clusterea.numerics.sinkhorn import SAME
from clusterea.numerics.sparse_matmul import SparseMatrix
from clusterea.types import Pair, Similarity

# With outside options of cosines o, log u is at most (1/2 - o) / T, and so is log v; both are at
# least what the largest sum leaves. If the similarities, divided by T, span no more than this, all
# of it lies within e^±700, which float64 holds. Without options, potentials of a part of the matrix
# that has more rows than columns drift away from the others' without end.
WIDEST = 200.0


@torch.no_grad()
def sparse_sinkhorn(
    similarity: Similarity, temperature: float, rounds: int, outside: Pair[Tensor] | None = None
) -> Similarity:
    """The cells scaled as `sinkhorn` scales a dense matrix in which absent cells are -inf.

    Each round is two sparse products with a vector: time and memory grow with the cells. Rows sum
    to 1 at most, as do columns, with outside options; without them, columns that have a cell sum
    to 1. (A sparse pattern may have no matrix with unit sums both ways: rows then stay below.)

    Args:
        similarity: The cells, of any values.
        temperature: T; the smaller, the nearer to a one-to-one assignment.
        rounds: How often rows and columns are scaled.
        outside: (rows,) and (columns,): the similarity that stands for having no partner.

    Raises:
        InputError: A similarity is NaN or infinite.
    """
    if not similarity.num_cells:
        return similarity
    potentials = sparse_potentials(similarity, temperature, rounds, outside)
    return with_potentials(similarity, temperature, potentials)


def with_potentials(
    similarity: Similarity, temperature: float, potentials: Pair[Tensor]
) -> Similarity:
    """The cells scaled by the potentials of `sparse_potentials`, their own or those of a part."""
    scaled = similarity.values.double() / temperature
    scaled += potentials.source.index_select(0, similarity.rows())
    scaled += potentials.target.index_select(0, similarity.columns)
    return replace(similarity, values=scaled.exp().float())


@torch.no_grad()
def sparse_potentials(
    similarity: Similarity,
    temperature: float,
    rounds: int,
    outside: Pair[Tensor] | None = None,
    begin: Pair[Tensor] | None = None,
) -> Pair[Tensor]:
    """(rows,) and (columns,) float64: log u and log v; see `sparse_sinkhorn`.

    `begin` has those of rounds before. A matrix without cells is not scaled: they stay as they are.
    """
    values = similarity.values.double() / temperature
    if not values.isfinite().all():
        raise InputError("a similarity must be a finite number. Got one that is not.")
    if outside is not None and not all(side.isfinite().all() for side in outside):
        raise InputError("outside must be finite, but holds NaN or infinity.")
    sizes = similarity.num_entities
    # As in the dense form u and v begin with 1, and the kernel with exp((S - 1) / T).
    source, target = begin or sizes.map(
        lambda size: values.new_full((size,), -SAME / 2 / temperature)
    )
    if not values.numel():
        return Pair(source, target)
    low, high = values.aminmax()
    is_narrow = outside is not None and float(high - low) <= WIDEST
    matrix = SparseMatrix(similarity.row_offsets, similarity.columns, values, sizes.target)
    cells = _Kernel(matrix) if is_narrow else _Logs(matrix)
    options = _options(outside, sizes, temperature, values)
    for _ in range(rounds):
        source = -torch.logaddexp(cells.log_sums(cells.by_row, target), options.source)
        target = -torch.logaddexp(cells.log_sums(cells.by_column, source), options.target)
    return Pair(source, target)


def _options(
    outside: Pair[Tensor] | None, sizes: Pair[int], temperature: float, like: Tensor
) -> Pair[Tensor]:
    """(rows,) and (columns,): the logarithms of the outside options.

    The kernel is exp((S - 1) / T), of whose constant each side's potential takes a half.
    """
    if outside is None:
        return sizes.map(lambda size: like.new_full((size,), -torch.inf))
    return outside.map(lambda side: (side.to(like) - SAME / 2) / temperature)


class _Logs:
    """Sums of exp(value + potential) in the log domain."""

    def __init__(self, matrix: SparseMatrix) -> None:
        self.by_row, self.by_column = matrix, matrix.transpose

    def log_sums(self, matrix: SparseMatrix, potentials: Tensor) -> Tensor:
        """(rows,): of each row's cells; -inf where there are none."""
        terms = matrix.values + potentials.index_select(0, matrix.columns)
        owner = owners(matrix.offsets, len(terms))
        largest = terms.new_full((matrix.num_rows,), -torch.inf)
        largest.scatter_reduce_(0, owner, terms, "amax")
        sums = segment_sum((terms - largest.index_select(0, owner)).exp(), matrix.offsets)
        return sums.log() + largest


class _Kernel(_Logs):
    """The same as products with the kernel, which float64 holds: many times faster."""

    def __init__(self, matrix: SparseMatrix) -> None:
        self._shift = matrix.values.max()
        kernel = (matrix.values - self._shift).exp()
        super().__init__(SparseMatrix(matrix.offsets, matrix.columns, kernel, matrix.num_columns))
        # Who has no cells would set the scale for all who have.
        self._is_empty = {
            id(self.by_row): lengths(self.by_column.offsets) == 0,
            id(self.by_column): lengths(self.by_row.offsets) == 0,
        }

    def log_sums(self, matrix: SparseMatrix, potentials: Tensor) -> Tensor:
        potentials = potentials.masked_fill(self._is_empty[id(matrix)], -torch.inf)
        largest = potentials.max()
        product = matrix.apply((potentials - largest).exp().unsqueeze(1)).squeeze(1)
        return product.log() + largest + self._shift
