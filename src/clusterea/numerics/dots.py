"""Dot products of chosen pairs of rows, summed in float64."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.numerics.block_sizes import block_size
from clusterea.numerics.csr import csr_tensor

TABLE = 1 << 22  # numbers of the dimensions multiplied at a time: 32 MB, about a CPU's cache
FEWEST_DIMENSIONS, MOST_DIMENSIONS = 32, 256  # of these
CELLS_AT_ONCE = 1 << 22  # products made at a time


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


def sampled_dots(rows: Tensor, others: Tensor, columns: Tensor) -> Tensor:
    """(rows, width) float64: each row's products with its columns of `others`, on a CPU.

    No row is copied for its products. Some dimensions are multiplied at a time, so that the numbers
    that many products read stay in the cache.

    Args:
        rows: (rows, dim).
        others: (n, dim).
        columns: (rows, width) of rows of `others`.
    """
    count, width = columns.shape
    dots = torch.zeros(count, width, dtype=torch.float64)
    at_once = TABLE // max(1, len(others)) // FEWEST_DIMENSIONS * FEWEST_DIMENSIONS
    at_once = min(MOST_DIMENSIONS, max(FEWEST_DIMENSIONS, at_once))
    step = max(1, CELLS_AT_ONCE // max(1, width))
    for first in range(0, rows.shape[1] if width else 0, at_once):
        dimensions = slice(first, first + at_once)
        table = others[:, dimensions].double()
        for start in range(0, count, step):
            part = slice(start, start + step)
            own = rows[part, dimensions].double()
            offsets = torch.arange(0, len(own) * width + 1, width, dtype=columns.dtype)
            cells = columns[part].flatten(), dots[part].flatten()
            so_far = csr_tensor(offsets, *cells, (len(own), len(others)))
            summed = torch.sparse.sampled_addmm(so_far, own, table.T).values()
            dots[part] = summed.view(len(own), width)
    return dots
