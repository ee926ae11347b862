"""Dense blocks of a similarity matrix: their product, and their best cells both ways."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.numerics.ties import as_dimensions, tie_vectors
from clusterea.types import Pair

SLAB_CELLS = {"cpu": 1 << 24, "cuda": 1 << 29}  # of a block at a time, where it is made anew


def block_product(left: Tensor, right: Tensor) -> Tensor:
    """(m, n): the products of all rows; on a GPU those of float16, added up in float32."""
    if left.device.type == "cuda":
        return torch.mm(left.half(), right.half().T, out_dtype=torch.float32)
    return left @ right.T


def best_of_block(
    vectors: Pair[Tensor], shifts: Pair[Tensor], k: int, keys: Pair[Tensor], seed: int
) -> tuple[Tensor, Tensor]:
    """(cells,) rows and (cells,) columns: the k best of each row and the k best of each column.

    The block is s_i · t_j + shift_i + shift_j, made anew in slabs. Products of tie vectors weigh
    in, so that no tie is left to the order of rows.
    """
    ties = tie_vectors(keys, seed).map(as_dimensions)
    sides = vectors.zip(ties).map(lambda side: torch.cat(side, dim=1))
    columns = _best(sides.source, sides.target, shifts.target, k)  # (m, k)
    rows = _best(sides.target, sides.source, shifts.source, k)  # (n, k)
    width = len(sides.target)
    own = torch.arange(len(columns), device=columns.device).unsqueeze(1)
    others = torch.arange(width, device=columns.device).unsqueeze(1)
    cells = torch.cat([(own * width + columns).flatten(), (rows * width + others).flatten()])
    cells = torch.unique(cells)
    return cells // width, cells % width


def _best(left: Tensor, right: Tensor, shift: Tensor, k: int) -> Tensor:
    """(m, k): for each row of `left` the rows of `right` with the largest products, shifted."""
    k = min(k, len(right))
    step = max(1, SLAB_CELLS[left.device.type] // len(right))
    shift = shift.to(left.dtype)
    chosen = torch.empty(len(left), k, dtype=torch.int64, device=left.device)
    for start in range(0, len(left), step):
        slab = block_product(left[start : start + step], right).add_(shift)
        chosen[start : start + step] = slab.topk(k, dim=1).indices
    return chosen
