"""`best`: the best target of every source; sources may share a target."""

from __future__ import annotations

from clusterea.matching.cells import Cells, OpenCells


def best(cells: OpenCells) -> Cells:
    """The first cell of every source entity. A target may be in several."""
    return cells.firsts().source
