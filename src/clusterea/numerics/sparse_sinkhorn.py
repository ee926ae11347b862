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

# With an outside option of cosine o, log u and log v are at most (1/2 - o) / T, and the largest sum
# bounds them from below. If the similarities, divided by T, span no more than this, all numbers lie
# within e^±700, which float64 holds. Without options there is no bound: in a part of the matrix
# with more rows than columns, potentials grow in every round.
WIDEST = 200.0


@torch.no_grad()
def sparse_sinkhorn(
    similarity: Similarity, temperature: float, rounds: int, outside: Pair[Tensor] | None = None
) -> Similarity:
    """The cells scaled as `sinkhorn` scales a dense matrix in which absent cells are -inf.

    Each round is two sparse products with a vector: time and memory grow with the cells. With
    outside options, rows and columns sum to at most 1. Without them, columns that have a cell sum
    to 1, and rows may stay below: some patterns of cells have no matrix in which all sums are 1.

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
    """The cells scaled by potentials from `sparse_potentials`, of this matrix or a part of it."""
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

    Rounds start from `begin`, if given. Without cells, the start is the result.
    """
    values = similarity.values.double() / temperature
    if not values.isfinite().all():
        raise InputError("a similarity must be a finite number. Got one that is not.")
    if outside is not None and not all(side.isfinite().all() for side in outside):
        raise InputError("outside must be finite, but holds NaN or infinity.")
    sizes = similarity.num_entities
    # As in the dense form, u and v start at 1, and the kernel is exp((S - 1) / T).
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

    The kernel is exp((S - 1) / T). Half of its constant is in the potentials of each side.
    """
    if outside is None:
        return sizes.map(lambda size: like.new_full((size,), -torch.inf))
    return outside.map(lambda side: (side.to(like) - SAME / 2) / temperature)


class _Logs:
    """Sums of exp(value + potential) in the log domain."""

    def __init__(self, matrix: SparseMatrix) -> None:
        self.by_row, self.by_column = matrix, matrix.transpose

    def log_sums(self, matrix: SparseMatrix, potentials: Tensor) -> Tensor:
        """(rows,): the log of the sum of each row's cells; -inf for a row without cells."""
        terms = matrix.values + potentials.index_select(0, matrix.columns)
        owner = owners(matrix.offsets, len(terms))
        largest = terms.new_full((matrix.num_rows,), -torch.inf)
        largest.scatter_reduce_(0, owner, terms, "amax")
        sums = segment_sum((terms - largest.index_select(0, owner)).exp(), matrix.offsets)
        return sums.log() + largest


class _Kernel(_Logs):
    """The same sums as products with the kernel, if float64 can hold it: many times faster."""

    def __init__(self, matrix: SparseMatrix) -> None:
        self._shift = matrix.values.max()
        kernel = (matrix.values - self._shift).exp()
        super().__init__(SparseMatrix(matrix.offsets, matrix.columns, kernel, matrix.num_columns))
        # The potential of an empty row or column must not set the scale for the others.
        self._is_empty = {
            id(self.by_row): lengths(self.by_column.offsets) == 0,
            id(self.by_column): lengths(self.by_row.offsets) == 0,
        }

    def log_sums(self, matrix: SparseMatrix, potentials: Tensor) -> Tensor:
        potentials = potentials.masked_fill(self._is_empty[id(matrix)], -torch.inf)
        largest = potentials.max()
        product = matrix.apply((potentials - largest).exp().unsqueeze(1)).squeeze(1)
        return product.log() + largest + self._shift
