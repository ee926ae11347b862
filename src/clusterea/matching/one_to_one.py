"""`one-to-one`: the optimal assignment, or the greedy one if the input is large."""

from __future__ import annotations

from clusterea.matching.cells import Cells, OpenCells
from clusterea.matching.greedy import greedy
from clusterea.matching.optimal import optimal

MOST_CELLS = 2_000_000
MOST_ENTITIES = 20_000  # sources with a cell; at both bounds the optimum takes 8 s of one core


def one_to_one(cells: OpenCells) -> Cells:
    """The optimal assignment if it takes seconds, otherwise the greedy one.

    The bound is not for each connected component: with dozens of candidates for each entity, nearly
    all entities are in one component.
    """
    small = len(cells) <= MOST_CELLS and cells.num_sources() <= MOST_ENTITIES
    return optimal(cells.whole()) if small else greedy(cells)
