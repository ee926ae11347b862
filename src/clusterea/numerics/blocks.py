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
GROUP = 32  # cells of a group
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
    count = len(right)
    k, width = min(k, count), min(k + SPARE, count)
    step = max(1, slab_cells // count)
    rounded = shift.float()
    padding = -count % GROUP if right.is_cuda else 0
    factors = torch.nn.functional.pad(right, (0, 0, 0, padding))
    rounded = torch.nn.functional.pad(rounded, (0, padding), value=-torch.inf)
    chosen = torch.empty(len(left), k, dtype=torch.int64, device=left.device)
    for start in range(0, len(left), step):
        rows = left[start : start + step]
        slab = block_product(rows, factors).add_(rounded)
        if slab.is_cuda:
            found = best_columns(slab, width)
            values, order = slab.gather(1, found).sort(dim=1, descending=True)
            found = found.gather(1, order)
        else:
            values, found = slab.topk(width, dim=1)
        del slab  # before the next one is made
        chosen[start : start + step] = found[:, :k]
        if k < count:
            unclear = (values[:, k - 1] - values[:, k] < CLOSE).nonzero().flatten()
            exact = _exact(rows[unclear], right, shift, found[unclear], k)
            chosen[start + unclear] = exact
    return chosen


def best_columns(cells: Tensor, width: int) -> Tensor:
    """(rows, width) int64: the columns of the largest cells of each row, in no order.

    They are in the groups with the largest maxima. A group has cells a stride apart.

    Args:
        cells: (rows, columns): the columns are a multiple of `GROUP`.
        width: How many.
    """
    count = cells.shape[1] // GROUP
    if count < width:
        return cells.topk(width, dim=1, sorted=False).indices
    groups = cells.view(len(cells), GROUP, count)
    near = groups.amax(1).topk(width, dim=1, sorted=False).indices
    inside = groups.gather(2, near.unsqueeze(1).expand(-1, GROUP, -1)).flatten(1)
    which = inside.topk(width, dim=1, sorted=False).indices
    return near.gather(1, which % width) + which // width * count


def _exact(left: Tensor, right: Tensor, shift: Tensor, columns: Tensor, k: int) -> Tensor:
    """(m, k): the k best of each row's columns, by exact products."""
    own = torch.arange(len(columns), device=columns.device).repeat_interleave(columns.shape[1])
    pairs = own, columns.flatten()
    cosines = pair_dots(left[:, :-DIMENSIONS], right[:, :-DIMENSIONS], *pairs)
    ties = pair_dots(left[:, -DIMENSIONS:], right[:, -DIMENSIONS:], *pairs)
    scores = cosines.double() + ties.double() + shift.double()[pairs[1]]
    return columns.gather(1, scores.view_as(columns).topk(k, dim=1).indices)
