"""`best`: the best target of every source; sources may share a target."""

from __future__ import annotations

from clusterea.matching.cells import Cells


def best(cells: Cells) -> Cells:
    """The first cell of every source entity. A target may be in several."""
    firsts = cells.firsts().source
    return cells.take(firsts[firsts >= 0])
