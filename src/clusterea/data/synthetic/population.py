"""`Population`: the world's entities, before any fact is drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clusterea.data.synthetic.shapes import PairShape
from clusterea.types import IntArray, Pair

FloatArray = NDArray[np.float64]

# Shares of the entity types: in DBpedia a few types (persons, works, places) hold most entities.
TYPE_SHARES = np.array([0.28, 0.17, 0.13, 0.10, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02, 0.02, 0.02])
COMMUNITY_ENTITIES = 250  # mean size of a community; the largest are some five times that
ACTIVITY_SPREAD = 0.9  # of log(how often an entity is a head): mild, articles say a few things each
POPULARITY_SPREAD = 2.6  # of log(how often an entity is a tail): wild, most are never pointed at

FAMILY_RATE = 0.3  # of families: those of more than one, as the songs of an album
FAMILY_END = 0.4  # they are 1 + geometric in size


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """Properties of each entity. Entities 0 … common - 1 are in both views, the rest in one."""

    kind: IntArray  # (entities,): its type
    position: FloatArray  # (entities,): in [0, 1); a community is an interval of positions
    activity: FloatArray  # (entities,): how often it is a head
    popularity: FloatArray  # (entities,): how often it is a tail
    borders: FloatArray  # (communities + 1,): where communities begin, from 0 to 1
    family: IntArray  # (entities,): siblings have the same one
    family_starts: IntArray  # (families + 1,): where each begins in `siblings`
    siblings: IntArray  # (entities,): family by family
    members: Pair[IntArray]  # the entities of each view, ascending
    common: int

    @property
    def size(self) -> int:
        return len(self.kind)

    def swap(self) -> Population:
        """The same entities with the views exchanged."""
        return replace(self, members=self.members.swap())

    def community(self, entities: IntArray) -> IntArray:
        """The community of each of `entities`."""
        return np.searchsorted(self.borders, self.position[entities], side="right") - 1

    @property
    def mean_family(self) -> float:
        """How many entities a family has on average."""
        return self.size / (len(self.family_starts) - 1)

    def relatives(self, entities: IntArray) -> tuple[IntArray, IntArray]:
        """All siblings of each of `entities`, and the position there of the one they belong to."""
        starts = self.family_starts[self.family[entities]]
        sizes = self.family_starts[self.family[entities] + 1] - starts
        origin = np.repeat(np.arange(len(entities)), sizes)
        within = np.arange(len(origin)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self.siblings[starts[origin] + within], origin


def draw_population(shape: PairShape, rng: np.random.Generator) -> Population:
    """The entities of both views, the common ones first."""
    common = shape.links
    lonely = shape.entities.map(lambda count: count - common)
    size = common + sum(lonely)
    shared = np.arange(common)
    first_target_only = common + lonely.source
    members = Pair(
        np.arange(first_target_only),
        np.concatenate([shared, np.arange(first_target_only, size)]),
    )
    communities = max(2, size // COMMUNITY_ENTITIES)
    widths = np.minimum(rng.pareto(2.0, communities) + 0.3, 6.0)
    borders = np.concatenate([[0.0], np.cumsum(widths) / widths.sum()])
    borders[-1] = 1.0
    kind = rng.choice(len(TYPE_SHARES), size=size, p=TYPE_SHARES)
    position = rng.random(size)
    status = np.searchsorted([common, first_target_only], np.arange(size), side="right")
    # Siblings are of one type, next to each other, and all of them in the same views.
    siblings = np.lexsort((position, kind, status))
    sizes = np.where(rng.random(size) < FAMILY_RATE, 1 + rng.geometric(FAMILY_END, size), 1)
    starts = np.cumsum(sizes) - sizes
    breaks = np.flatnonzero(np.diff(status[siblings] * len(TYPE_SHARES) + kind[siblings])) + 1
    starts = np.union1d(starts[starts < size], breaks)
    family = np.empty(size, dtype=np.int64)
    family[siblings] = np.searchsorted(starts, np.arange(size), side="right") - 1
    return Population(
        kind=kind,
        position=position,
        family=family,
        family_starts=np.append(starts, size),
        siblings=siblings,
        # A fact about one is repeated for its siblings, so each is drawn less often by that factor.
        activity=rng.lognormal(sigma=ACTIVITY_SPREAD, size=size) / np.bincount(family)[family],
        popularity=rng.lognormal(sigma=POPULARITY_SPREAD, size=size),
        borders=borders,
        members=members,
        common=common,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Some entities ordered by type and position, to draw from by weight."""

    members: IntArray
    keys: FloatArray  # type + position: ascending
    edges: FloatArray  # (members + 1,): weights added up, from 0

    @classmethod
    def of(cls, population: Population, entities: IntArray, weight: FloatArray) -> Pool:
        """The pool of `entities` with the weights that `weight` gives all of the population."""
        keys = population.kind[entities] + population.position[entities]
        order = np.argsort(keys, kind="stable")
        members = entities[order]
        edges = np.concatenate([[0.0], np.cumsum(weight[members])])
        return cls(members, keys[order], edges)

    def span(self, kind: int, lowest: float, highest: float, wanted: int) -> tuple[int, int]:
        """A range of members of type `kind` in [lowest, highest), or wider if too few are there."""
        for low, high in ((lowest, highest), (0.0, 1.0)):
            start, stop = np.searchsorted(self.keys, (kind + low, kind + high))
            if stop - start >= wanted:
                break
        if stop == start:
            return 0, len(self.members)
        return int(start), int(stop)

    def draw(self, rng: np.random.Generator, wanted: int, span: tuple[int, int]) -> IntArray:
        """At most `wanted` distinct members of `span` by weight, the heaviest first."""
        start, stop = span
        size = stop - start
        wanted = min(wanted, size)
        if wanted * 8 > size:
            # Weighted sampling without replacement, by exponential variables.
            weights = np.diff(self.edges[start : stop + 1])
            clocks = rng.exponential(size=size) / weights
            slots = np.argpartition(clocks, wanted - 1)[:wanted] + start
        else:
            slots = np.empty(0, dtype=np.int64)
            for _ in range(4):
                spots = rng.uniform(self.edges[start], self.edges[stop], 2 * wanted)
                drawn = np.searchsorted(self.edges, spots, side="right") - 1
                slots = np.unique(np.concatenate([slots, np.clip(drawn, start, stop - 1)]))
                if len(slots) >= wanted:
                    break
            slots = rng.permutation(slots)[:wanted]
        weights = self.edges[slots + 1] - self.edges[slots]
        return self.members[slots[np.argsort(-weights, kind="stable")]]
