"""`AlignmentTask`: everything that a stage sees."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from clusterea.types.arrays import IntArray, check_range, frozen_ids
from clusterea.types.decisions import Decisions
from clusterea.types.graph import KnowledgeGraph
from clusterea.types.links import NO_LINKS, are_among, check_one_to_one
from clusterea.types.pair import Pair
from clusterea.types.texts import Texts

NO_ENTITIES = Pair(np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class AlignmentTask:
    """Two graphs and the seeds. It has no test links, so no stage can see them.

    Presumed pairs are seeds that equal names suggest. Stages learn from them as from seeds, but
    match their entities like all others, so that structure can correct a wrong one.

    What a person decided is here too: accepted pairs are seeds, `rejected` pairs are never linked,
    and entities that are `alone` have no counterpart. Answers to `chosen` questions are not a fair
    sample: we ask about the unsure pairs.
    """

    graphs: Pair[KnowledgeGraph]
    seeds: IntArray  # (n, 2): source entity, target entity; one-to-one
    keys: Pair[IntArray] | None = None  # the tie key of each entity
    structural: Pair[IntArray] = NO_ENTITIES  # never linked: blank nodes
    presumed: IntArray = field(
        default_factory=NO_LINKS.copy
    )  # (n, 2); no entity twice, or in a seed
    names: Pair[Texts] | None = None  # normalized, to be compared; None: names are not used
    features: Pair[NDArray[np.float32]] | None = None  # (entities, dim): the user's own vectors
    rejected: IntArray = field(default_factory=NO_LINKS.copy)  # (n, 2): pairs that are not the same
    alone: Pair[IntArray] = NO_ENTITIES  # entities without a counterpart; in no seed
    chosen: IntArray = field(
        default_factory=NO_LINKS.copy
    )  # (n, 2): seeds and rejected pairs that answer a question which was not a random one

    def __post_init__(self) -> None:
        for what in ("seeds", "presumed", "rejected", "chosen"):
            pairs = frozen_ids(getattr(self, what), what, columns=2)
            object.__setattr__(self, what, pairs)
            check_range(pairs[:, 0], f"{what}' source entities", self.graphs.source.num_entities)
            check_range(pairs[:, 1], f"{what}' target entities", self.graphs.target.num_entities)
        check_one_to_one(self.all_seeds, "seeds")
        keys = self.keys or self.graphs.map(lambda graph: np.arange(graph.num_entities))
        object.__setattr__(self, "keys", keys.map(lambda side: frozen_ids(side, "keys")))
        for side, graph in keys.zip(self.graphs):
            if len(side) != graph.num_entities:
                raise ValueError(
                    f"keys must be one for each entity. Got {len(side):,} for {graph!r} instead."
                )
        self._check_never_linked("structural", "structural entities are never linked")
        self._check_never_linked("alone", "entities that are alone have no counterpart")
        self._check_contents()

    def _check_never_linked(self, name: str, reason: str) -> None:
        """Raises if a seed has one of these entities; sorts them."""
        given: Pair[IntArray] = getattr(self, name)
        both = given.map(lambda ids: frozen_ids(np.unique(ids), name))
        object.__setattr__(self, name, both)
        for ids, graph in both.zip(self.graphs):
            check_range(ids, name, graph.num_entities)
        for ids, ends in both.zip(Pair(*self.all_seeds.T)):
            if len(ids) and np.isin(ends, ids).any():
                raise ValueError(f"{reason}, so no seed may have one.")

    def _check_contents(self) -> None:
        """Raises unless names and features are those of these entities."""
        for what, pair in (("names", self.names), ("features", self.features)):
            for side, graph in pair.zip(self.graphs) if pair is not None else ():
                count = side.num_entities if isinstance(side, Texts) else len(side)
                if count != graph.num_entities:
                    raise ValueError(
                        f"{what} must be one for each entity. Got {count:,} for {graph!r} instead."
                    )

    @property
    def num_entities(self) -> Pair[int]:
        return self.graphs.map(lambda graph: graph.num_entities)

    @property
    def never_linked(self) -> Pair[IntArray]:
        """Entities of each side that have no link: structural ones, and those that are alone."""
        return self.structural.zip(self.alone).map(lambda side: np.union1d(*side))

    @property
    def num_undecided(self) -> Pair[int]:
        """Entities of each side that may be linked and are in no seed."""
        return self.graphs.zip(self.never_linked).map(
            lambda side: side[0].num_entities - len(side[1]) - self.num_seeds
        )

    @property
    def num_seeds(self) -> int:
        return len(self.seeds)

    @property
    def all_seeds(self) -> IntArray:
        """(n, 2): the seeds and the presumed pairs."""
        if not len(self.presumed):
            return self.seeds
        return np.concatenate([self.seeds, self.presumed])

    @property
    def tie_keys(self) -> Pair[IntArray]:
        """(entities,) int64 of each side: hashes of names, or ids if there are no names."""
        assert self.keys is not None
        return self.keys

    def with_seeds(self, seeds: IntArray, presumed: IntArray = NO_LINKS) -> AlignmentTask:
        """The same graphs with other seeds and presumed pairs."""
        return replace(self, seeds=seeds, presumed=presumed)

    def without(self, pairs: IntArray, rejected: IntArray) -> AlignmentTask:
        """The same graphs without these seeds or presumed pairs, and these rejected pairs."""

        def left(own: IntArray, taken: IntArray) -> IntArray:
            kept: IntArray = own[~are_among(own, taken)]
            return kept

        return replace(
            self,
            seeds=left(self.seeds, pairs),
            presumed=left(self.presumed, pairs),
            rejected=left(self.rejected, rejected),
        )

    def with_decisions(self, decisions: Decisions) -> AlignmentTask:
        """The same graphs with what a person decided, which counts more than seeds.

        Decisions about structural entities are ignored: these are never linked.
        """
        accepted = _apart(decisions.accepted, self.structural)
        taken = Pair(*accepted.T).zip(decisions.alone).map(np.concatenate)
        alone = decisions.alone.zip(self.structural).map(lambda side: np.setdiff1d(*side))

        def kept(pairs: IntArray) -> IntArray:
            left = _apart(pairs, taken)
            own: IntArray = left[~are_among(left, decisions.rejected)]
            return own

        return replace(
            self,
            seeds=np.concatenate([kept(self.seeds), accepted]),
            presumed=kept(self.presumed),
            rejected=_apart(decisions.rejected, self.structural),
            alone=alone,
            chosen=_apart(decisions.chosen, self.structural),
        )

    def in_order(self) -> AlignmentTask:
        """The same task with pairs sorted by tie keys, so that file order does not matter."""

        def ordered(pairs: IntArray) -> IntArray:
            source, target = self.tie_keys.zip(Pair(*pairs.T)).map(lambda side: side[0][side[1]])
            sorted_pairs: IntArray = pairs[np.lexsort((target, source))]
            return sorted_pairs

        return replace(
            self,
            seeds=ordered(self.seeds),
            presumed=ordered(self.presumed),
            rejected=ordered(self.rejected),
            chosen=ordered(self.chosen),
        )

    def swap(self) -> AlignmentTask:
        """The same task with source and target exchanged."""
        return AlignmentTask(
            self.graphs.swap(),
            self.seeds[:, ::-1],
            self.tie_keys.swap(),
            self.structural.swap(),
            self.presumed[:, ::-1],
            self.names and self.names.swap(),
            self.features and self.features.swap(),
            self.rejected[:, ::-1],
            self.alone.swap(),
            self.chosen[:, ::-1],
        )

    def __repr__(self) -> str:
        source, target = self.graphs
        presumed = f", {len(self.presumed):,} presumed" if len(self.presumed) else ""
        return (
            f"AlignmentTask({self.num_seeds:,} seeds{presumed}, "
            f"source={source!r}, target={target!r})"
        )


def _apart(pairs: IntArray, taken: Pair[IntArray]) -> IntArray:
    """The pairs with none of these entities."""
    is_free = ~np.isin(pairs[:, 0], taken.source) & ~np.isin(pairs[:, 1], taken.target)
    return pairs[is_free]
