"""`hungarian`: the optimal assignment, or an error if the input is too large."""

from __future__ import annotations

from clusterea.errors import InputError
from clusterea.matching.cells import Cells, OpenCells
from clusterea.matching.optimal import optimal

MOST_CELLS = 5_000_000
MOST_ENTITIES = 50_000  # sources with a cell; more would take minutes


def hungarian(cells: OpenCells) -> Cells:
    """The one-to-one matching with the largest total score. All cells are put together.

    Raises:
        InputError: It would take minutes.
    """
    entities = cells.num_sources()
    if len(cells) > MOST_CELLS or entities > MOST_ENTITIES:
        raise InputError(
            f"matching 'hungarian' takes at most {MOST_CELLS:,} cells of {MOST_ENTITIES:,} source "
            f"entities. Got {len(cells):,} cells of {entities:,}. Choose 'greedy' instead."
        )
    return optimal(cells.whole())
