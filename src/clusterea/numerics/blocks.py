"""Dense blocks of a similarity matrix: their products, and the best cells of rows and columns."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.numerics.block_sizes import fitting_size
from clusterea.numerics.dots import pair_dots
from clusterea.numerics.products import linear
from clusterea.numerics.ties import DIMENSIONS, as_dimensions, tie_vectors
from clusterea.types import Pair

CELL_BYTES = 8  # memory for each cell of a block while its best cells are chosen
SPARE = 16  # cells beyond k that are compared exactly if rounding may decide which are the k best
CLOSE = 1e-5  # more than the rounding error of a product (that of its factors not included)


def block_product(left: Tensor, right: Tensor) -> Tensor:
    """(m, n): the dot products of all rows; those of float16 are summed in float32."""
    if left.dtype == torch.float16:
        return torch.mm(left, right.T, out_dtype=torch.float32)
    return linear(left, right)


def best_of_block(
    vectors: Pair[Tensor],
    shifts: Pair[Tensor],
    k: int,
    keys: Pair[Tensor],
    seed: int,
    slab_cells: int | None = None,
) -> tuple[Tensor, Tensor]:
    """(cells,) rows and (cells,) columns: the k best of each row and the k best of each column.

    The block is s_i · t_j + shift_i + shift_j, computed in slabs. Products of tie vectors are
    added, so the order of rows does not decide ties. If rounded products are too close to each
    other, exact ones decide, so the slab size does not change the result.
    """
    ties = tie_vectors(keys, seed).map(as_dimensions)
    sides = vectors.zip(ties).map(lambda side: torch.cat([side[0], side[1].to(side[0])], dim=1))
    cells = slab_cells or fitting_size("best cells", sides.source.device, CELL_BYTES)
    columns = _best(sides.source, sides.target, shifts.target, k, cells)  # (m, k)
    rows = _best(sides.target, sides.source, shifts.source, k, cells)  # (n, k)
    width = len(sides.target)
    own = torch.arange(len(columns), device=columns.device).unsqueeze(1)
    others = torch.arange(width, device=columns.device).unsqueeze(1)
    found = torch.cat([(own * width + columns).flatten(), (rows * width + others).flatten()])
    found = torch.unique(found)
    return found // width, found % width


def _best(left: Tensor, right: Tensor, shift: Tensor, k: int, slab_cells: int) -> Tensor:
    """(m, k): for each row of `left`, the rows of `right` with the largest shifted products."""
    k = min(k, len(right))
    step = max(1, slab_cells // len(right))
    rounded = shift.float()
    chosen = torch.empty(len(left), k, dtype=torch.int64, device=left.device)
    for start in range(0, len(left), step):
        rows = left[start : start + step]
        slab = block_product(rows, right).add_(rounded)
        best = slab.topk(min(k + SPARE, len(right)), dim=1)
        del slab  # before the next one is made
        chosen[start : start + step] = best.indices[:, :k]
        if k < len(right):
            gaps = best.values[:, k - 1] - best.values[:, k]
            unclear = (gaps < CLOSE).nonzero().flatten()
            exact = _exact(rows[unclear], right, shift, best.indices[unclear], k)
            chosen[start + unclear] = exact
    return chosen


def _exact(left: Tensor, right: Tensor, shift: Tensor, columns: Tensor, k: int) -> Tensor:
    """(m, k): the k best of each row's columns, by exact products."""
    own = torch.arange(len(columns), device=columns.device).repeat_interleave(columns.shape[1])
    pairs = own, columns.flatten()
    cosines = pair_dots(left[:, :-DIMENSIONS], right[:, :-DIMENSIONS], *pairs)
    ties = pair_dots(left[:, -DIMENSIONS:], right[:, -DIMENSIONS:], *pairs)
    scores = cosines.double() + ties.double() + shift.double()[pairs[1]]
    return columns.gather(1, scores.view_as(columns).topk(k, dim=1).indices)
