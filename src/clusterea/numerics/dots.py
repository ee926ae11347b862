"""Dot products of chosen pairs of rows."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.numerics.block_sizes import block_size


def pair_dots(left: Tensor, right: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """(pairs,) float32: left[rows] · right[columns], summed in float64.

    Equal vectors give equal products, in any row and on any device.
    """
    step = max(1, block_size("pair products", left.device) // max(left.shape[1], 1))
    result = torch.empty(len(rows), device=left.device)
    for start in range(0, len(rows), step):
        chosen = slice(start, start + step)
        one = left.index_select(0, rows[chosen]).double()
        other = right.index_select(0, columns[chosen]).double()
        result[chosen] = one.mul_(other).sum(1).float()
    return result
