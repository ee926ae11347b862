"""`verdicts`: of which links others tell something, and which of them they confirm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clusterea.types import IntArray


def verdicts(links: IntArray, known: IntArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(links,) each: which have an entity of `known` at either end, and which are one of `known`.

    Where a link has such an entity and is none of them, they contradict it.
    """
    told = np.isin(links[:, 0], known[:, 0]) | np.isin(links[:, 1], known[:, 1])
    # One number a pair: no id reaches the width, so no two pairs share one.
    width = int(max(links[:, 1].max(initial=0), known[:, 1].max(initial=0))) + 1
    return told, np.isin(links @ [width, 1], known @ [width, 1])
