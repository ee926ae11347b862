"""`expected_cells`: how many cells of a row a floor from a sample should let through.

It and the other numbers here are for `gpu_search` and for the plan of memory. They need no torch.
"""

from __future__ import annotations

from collections.abc import Iterable

SAMPLED = 16  # one column of so many tells the floor
DEVIATIONS = 2.3  # of the expected number above the wanted one: about 1 % of rows have fewer
PASSES = 8  # of rows, at least: after each, the best cells of columns are merged
ROOM = 4  # cells of a column's bucket, for each wanted
CELL_BYTES = 4  # memory for each cell of a block
FEWEST = 1 << 14  # rows of the smaller side, below which `knn.best_cells` is as fast


def expected_cells(width: int) -> int:
    """The expected number of cells above a floor, so that nearly always `width` of them are.

    The sample has 1 / SAMPLED of them, with a standard deviation of the root of that number.
    """
    spread = DEVIATIONS * SAMPLED**0.5
    root: float = (spread + (spread**2 + 4 * width) ** 0.5) / 2
    return int(root**2) + 1


def room_of(width: int) -> int:
    """The cells that a row has room for: it rarely gets more."""
    expected = expected_cells(width)
    return expected + int(3 * (SAMPLED * expected) ** 0.5)


def is_large(sizes: Iterable[int], width: int) -> bool:
    """Whether both sides have enough rows for a sample."""
    return min(sizes) >= max(FEWEST, 4 * SAMPLED * expected_cells(width))
