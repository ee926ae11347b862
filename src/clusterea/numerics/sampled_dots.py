"""`sampled_dots`: products of rows with chosen rows of another matrix, in float64 on a CPU.

To gather the chosen rows would be a copy for each product. Instead, the other matrix is read tile
by tile. A tile is turned into float64 once for many rows, and stays in the cache.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.numerics.block_sizes import BLOCK_SIZES, block_size
from clusterea.numerics.rows import Rows
from clusterea.numerics.segments import offsets_of
from clusterea.numerics.sparse_matmul import SparseMatrix

CELLS = 1 << 18  # most products at a time: 10 MB with their places
TILE_NUMBERS = 1 << 20  # of the other side at a time: 8 MB

_HOST = torch.device("cpu")


def rows_at_once(dim: int, width: int, numbers: int) -> int:
    """How many rows are turned into float64 at a time: at most so many numbers."""
    return max(1, min(numbers // max(dim, 1), CELLS // max(width, 1)))


def suits(others: int, dim: int, width: int) -> bool:
    """Whether the other matrix is so small that reading all of it is faster than gathering rows.

    It does not depend on the number of rows, nor on free memory: sums would round otherwise.
    """
    return others <= rows_at_once(dim, width, BLOCK_SIZES["sampled rows"]["cpu"]) * width


def sampled_dots(rows: Tensor, others: Rows, columns: Tensor, wanted: Tensor) -> Tensor:
    """(rows, width) float64: each row's products with its columns of `others`; zero if unwanted.

    A product is the same in every chunk and tile.

    Args:
        rows: (rows, dim) on the host.
        others: (others, dim) on the host.
        columns: (rows, width): numbers of `others`, no number twice in a row.
        wanted: (rows, width) bool: which products are computed.
    """
    count, width = columns.shape
    dim = rows.shape[1]
    dots = torch.zeros(count, width, dtype=torch.float64)
    step = min(count, rows_at_once(dim, width, block_size("sampled rows", _HOST)))
    high = max(1, min(len(others), TILE_NUMBERS // max(dim, 1)))
    own, tile = (torch.empty(size, dim, dtype=torch.float64) for size in (step, high))
    for start in range(0, count, step):
        size = min(step, count - start)
        own[:size] = rows[start : start + step]
        at = wanted[start : start + step].flatten().nonzero().flatten()
        of_cells = columns[start : start + step].flatten()[at].long()
        # By tile, then by row.
        owner, order = (of_cells // high).sort(stable=True)
        tiles = -(-len(others) // high)
        stops = offsets_of(owner.bincount(minlength=tiles)).tolist()
        at, of_cells = at[order], of_cells[order]
        row = at // width
        products = torch.zeros(len(at), dtype=torch.float64)
        for number in range(tiles):
            cells = slice(stops[number], stops[number + 1])
            if cells.start == cells.stop:
                continue
            begin = number * high
            near = others.between(begin, min(begin + high, len(others)))
            tile[: len(near)] = near
            offsets = offsets_of(row[cells].bincount(minlength=size))
            cut = SparseMatrix(offsets, of_cells[cells] - begin, products[cells], len(near))
            found = torch.sparse.sampled_addmm(
                cut.csr(torch.float64), own[:size], tile[: len(near)].T, beta=0
            )
            products[cells] = found.values()
        dots[start : start + step].view(-1)[at] = products
    return dots
