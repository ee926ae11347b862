"""`AlignmentTask`: everything that a stage sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clusterea.types.arrays import IntArray, check_range, frozen_ids
from clusterea.types.graph import KnowledgeGraph
from clusterea.types.links import check_one_to_one
from clusterea.types.pair import Pair

NO_ENTITIES = Pair(np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlignmentTask:
    """Two graphs and the seeds. It has no test links, so no stage can see them."""

    graphs: Pair[KnowledgeGraph]
    seeds: IntArray  # (n, 2): source entity, target entity; one-to-one
    keys: Pair[IntArray] | None = None  # the tie key of each entity
    structural: Pair[IntArray] = NO_ENTITIES  # never linked: blank nodes

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", frozen_ids(self.seeds, "seeds", columns=2))
        check_range(self.seeds[:, 0], "seeds' source entities", self.graphs.source.num_entities)
        check_range(self.seeds[:, 1], "seeds' target entities", self.graphs.target.num_entities)
        check_one_to_one(self.seeds, "seeds")
        keys = self.keys or self.graphs.map(lambda graph: np.arange(graph.num_entities))
        object.__setattr__(self, "keys", keys.map(lambda side: frozen_ids(side, "keys")))
        for side, graph in keys.zip(self.graphs):
            if len(side) != graph.num_entities:
                raise ValueError(
                    f"keys must be one for each entity. Got {len(side):,} for {graph!r} instead."
                )
        structural = self.structural.map(lambda ids: frozen_ids(np.unique(ids), "structural"))
        object.__setattr__(self, "structural", structural)
        for ids, graph in structural.zip(self.graphs):
            check_range(ids, "structural", graph.num_entities)
        for ids, ends in structural.zip(Pair(self.seeds[:, 0], self.seeds[:, 1])):
            if len(ids) and np.isin(ends, ids).any():
                raise ValueError("structural entities are never linked, so no seed may have one.")

    @property
    def num_entities(self) -> Pair[int]:
        return self.graphs.map(lambda graph: graph.num_entities)

    @property
    def num_undecided(self) -> Pair[int]:
        """Entities of each side that may be linked and are in no seed."""
        return self.graphs.zip(self.structural).map(
            lambda side: side[0].num_entities - len(side[1]) - self.num_seeds
        )

    @property
    def num_seeds(self) -> int:
        return len(self.seeds)

    @property
    def tie_keys(self) -> Pair[IntArray]:
        """(entities,) int64 of each side: hashes of names, or ids if there are no names."""
        assert self.keys is not None
        return self.keys

    def with_seeds(self, seeds: IntArray) -> AlignmentTask:
        """The same graphs with other seeds."""
        return AlignmentTask(self.graphs, seeds, self.tie_keys, self.structural)

    def in_order(self) -> AlignmentTask:
        """The same task with seeds sorted by tie key, so that file order does not matter."""
        order = self.tie_keys.source[self.seeds[:, 0]].argsort(kind="stable")
        return self.with_seeds(self.seeds[order])

    def swap(self) -> AlignmentTask:
        """The same task with source and target exchanged."""
        return AlignmentTask(
            self.graphs.swap(),
            self.seeds[:, ::-1],
            self.tie_keys.swap(),
            self.structural.swap(),
        )

    def __repr__(self) -> str:
        source, target = self.graphs
        return f"AlignmentTask({self.num_seeds:,} seeds, source={source!r}, target={target!r})"
