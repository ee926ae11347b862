"""`by_degree`: ranking metrics by the degree of an entity."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor

from clusterea.evaluation.ranking import ranking
from clusterea.evaluation.rivals import Rivals
from clusterea.types import DegreeBucket

# The upper bound of each bucket, included; the last bucket has none.
BOUNDS = (-1, 0, 1, 2, 4, 8, 16)


def by_degree(rivals: Rivals, degrees: Tensor) -> tuple[DegreeBucket, ...]:
    """The ranking of the links in each bucket of degrees: 0, 1, 2, 3-4, 5-8, 9-16, 17 and more.

    Buckets without a link are left out. The last bucket ends at the largest degree.

    Args:
        rivals: The rivals of each link.
        degrees: (links,): the degree of each link's entity.
    """
    largest = max(int(degrees.max()), BOUNDS[-1] + 1)
    buckets = []
    for before, most in pairwise((*BOUNDS, largest)):
        inside = ((degrees > before) & (degrees <= most)).nonzero().flatten()
        if inside.numel():
            found = ranking(rivals[inside])
            buckets.append(DegreeBucket(before + 1, most, inside.numel(), found))
    return tuple(buckets)
