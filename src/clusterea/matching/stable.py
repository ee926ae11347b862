"""`stable`: no two entities would both leave their partners for each other."""

from __future__ import annotations

from clusterea.matching.cells import Cells
from clusterea.matching.greedy import greedy


def stable(cells: Cells) -> Cells:
    """The stable matching: it is the greedy one, so that is what computes it.

    Gale and Shapley let each side have preferences of its own. Here both sides read theirs off the
    same cells in the same strict order. The first cell of all is then its two entities' first
    choice, so every stable matching holds it (they would block any other); take it out and the same
    is true of the rest. There is just one stable matching, whoever proposes, and `greedy` finds it.
    """
    return greedy(cells)
