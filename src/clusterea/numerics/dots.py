"""Dot products of chosen pairs of rows."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.numerics.block_sizes import block_size
from clusterea.numerics.rows import Rows, as_rows


def pair_dots(left: Tensor, right: Tensor | Rows, rows: Tensor, columns: Tensor) -> Tensor:
    """(pairs,) float32: left[rows] · right[columns], summed in float64.

    Equal vectors give equal products, in any row and on any device.
    """
    others = as_rows(right)
    step = max(1, block_size("pair products", left.device) // max(left.shape[1], 1))
    result = torch.empty(len(rows), device=left.device)
    for start in range(0, len(rows), step):
        chosen = slice(start, start + step)
        one = left.index_select(0, rows[chosen]).double()
        other = others.take(columns[chosen]).double()
        result[chosen] = one.mul_(other).sum(1).float()
    return result
