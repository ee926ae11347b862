"""`Neighbors`: the distinct neighbors of each entity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clusterea.graph.functionality import changes
from clusterea.types import IntArray, KnowledgeGraph

UNITS_OF_ONE = 2.0**30  # of the sums in `shares`


@dataclass(frozen=True, slots=True, eq=False)
class Neighbors:
    """The neighbors of entity i are `others[offsets[i] : offsets[i + 1]]`.

    Relations, directions and loops are ignored.
    """

    offsets: IntArray  # (entities + 1,)
    others: IntArray  # (neighbors of all,)

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> Neighbors:
        size = graph.num_entities
        heads, tails = graph.heads, graph.tails
        keys = np.concatenate([heads * size + tails, tails * size + heads])
        keys.sort()  # np.unique takes three times as long
        owners, others = np.divmod(keys[changes(keys)], max(size, 1))
        kept = owners != others
        counts = np.bincount(owners[kept], minlength=size)
        return cls(np.concatenate([np.zeros(1, np.int64), counts.cumsum()]), others[kept])

    def of_entity(self, entity: int) -> IntArray:
        """The neighbors of one entity, ascending."""
        found: IntArray = self.others[self.offsets[entity] : self.offsets[entity + 1]]
        return found

    def counts(self) -> IntArray:
        """(entities,): how many neighbors each entity has."""
        return np.diff(self.offsets)

    def shares(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """(entities,): the sum of weight / number of neighbors, over the neighbors of each entity.

        Each summand is rounded to 2^-30, so that the sum does not depend on the order.

        Args:
            weights: (entities,): of each entity, in [0, 1].
        """
        counts = self.counts()
        parts = np.round(weights / np.maximum(counts, 1) * UNITS_OF_ONE)
        owners = np.repeat(np.arange(len(counts)), counts)
        return np.bincount(owners, parts[self.others], len(counts)) / UNITS_OF_ONE
