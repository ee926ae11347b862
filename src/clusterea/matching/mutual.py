"""`mutual`: pairs of which each is the other's best."""

from __future__ import annotations

from clusterea.matching.cells import Cells


def mutual(cells: Cells) -> Cells:
    """The cells that are the first both of their source and of their target entity."""
    firsts = cells.firsts()
    mine = firsts.source[firsts.source >= 0]
    return cells.take(mine[firsts.target[cells.ends.target[mine]] == mine])
