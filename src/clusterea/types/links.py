"""Checks for (n, 2) arrays of links, and look-ups in them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clusterea.types.arrays import IntArray

NO_LINKS = np.empty((0, 2), np.int64)


def has_repeats(ids: IntArray) -> bool:
    """Whether some id occurs more than once."""
    ordered = np.sort(ids)
    return bool((ordered[1:] == ordered[:-1]).any())


def check_one_to_one(links: IntArray, name: str) -> None:
    """Raises if an entity of either side has two counterparts."""
    for side, ids in (("source", links[:, 0]), ("target", links[:, 1])):
        if has_repeats(ids):
            values, counts = np.unique(ids, return_counts=True)
            worst = int(counts.argmax())
            raise ValueError(
                f"{name} must be one-to-one. Got {counts[worst]} links "
                f"of {side} entity {values[worst]} instead."
            )


def are_among(pairs: IntArray, others: IntArray) -> NDArray[np.bool_]:
    """(pairs,): whether each is one of the others."""
    width = 1 + max(pairs[:, 1].max(initial=0), others[:, 1].max(initial=0))
    return np.isin(pairs[:, 0] * width + pairs[:, 1], others[:, 0] * width + others[:, 1])
