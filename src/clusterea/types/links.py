"""Checks for (n, 2) arrays of links."""

from __future__ import annotations

import numpy as np

from clusterea.types.arrays import IntArray


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
