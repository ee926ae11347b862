"""`stable`: no two entities prefer each other to their partners."""

from __future__ import annotations

from clusterea.matching.cells import Cells, OpenCells
from clusterea.matching.greedy import greedy


def stable(cells: OpenCells) -> Cells:
    """The stable matching, which is here the same as the greedy one.

    In general (Gale and Shapley) each side has its own preferences. Here both sides prefer cells in
    the same strict order. So the first cell is the first choice of both its entities, and every
    stable matching contains it. Without it, the same holds for the next. So there is only one
    stable matching, and `greedy` finds it.
    """
    return greedy(cells)
