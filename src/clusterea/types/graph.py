"""`KnowledgeGraph`: one side's triples, as integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clusterea.types.arrays import IntArray, check_count, check_range, frozen_ids


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KnowledgeGraph:
    """Triples over entities 0 … num_entities - 1 and relations 0 … num_relations - 1."""

    triples: IntArray  # (n, 3): head, relation, tail
    num_entities: int
    num_relations: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "triples", frozen_ids(self.triples, "triples", columns=3))
        check_count(self.num_entities, "num_entities")
        check_count(self.num_relations, "num_relations")
        check_range(self.heads, "heads", self.num_entities)
        check_range(self.relations, "relations", self.num_relations)
        check_range(self.tails, "tails", self.num_entities)

    @property
    def heads(self) -> IntArray:
        return self.triples[:, 0]

    @property
    def relations(self) -> IntArray:
        return self.triples[:, 1]

    @property
    def tails(self) -> IntArray:
        return self.triples[:, 2]

    @property
    def num_triples(self) -> int:
        return len(self.triples)

    def degrees(self) -> IntArray:
        """(num_entities,): triples in which each entity is head or tail; a loop counts twice."""
        size = self.num_entities
        return np.bincount(self.heads, minlength=size) + np.bincount(self.tails, minlength=size)

    def __repr__(self) -> str:
        return (
            f"KnowledgeGraph({self.num_entities:,} entities, {self.num_relations:,} relations, "
            f"{self.num_triples:,} triples)"
        )
