"""`mutual`: pairs of entities that are each other's best."""

from __future__ import annotations

from clusterea.matching.cells import Cells


def mutual(cells: Cells) -> Cells:
    """The cells that are the first of both their entities."""
    firsts = cells.firsts()
    mine = firsts.source[firsts.source >= 0]
    return cells.take(mine[firsts.target[cells.ends.target[mine]] == mine])
