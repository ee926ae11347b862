"""`Facts`: triples of the world, drawn relation by relation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clusterea.data.synthetic.population import FloatArray, Pool, Population
from clusterea.data.synthetic.vocabulary import Vocabulary
from clusterea.types import IntArray

LOCAL_SHARE = 0.92  # of a fact's ends: they lie near their entity's position; the others anywhere
FRAY = 0.2  # how near, in widths of its community
HEAD_CONCENTRATION = 1.2  # heads share what is left after one fact each almost evenly
# Tail share below which a relation holds for whole families: the songs of an album have one artist,
# but not one successor.
FAMILIAL = 0.6
_ROUNDS = 6  # draws before a layer that is full is left as it is


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """Triples over the world's entities and relations, a column each."""

    heads: IntArray
    relations: IntArray
    tails: IntArray
    groups: IntArray  # facts of one group tend to be kept together: companions, and siblings'

    def __len__(self) -> int:
        return len(self.heads)

    def take(self, which: IntArray | NDArray[np.bool_]) -> Facts:
        """The facts that `which` selects, in its order."""
        return Facts(
            self.heads[which], self.relations[which], self.tails[which], self.groups[which]
        )

    def join(self, other: Facts) -> Facts:
        """These facts and then `other`, whose groups stay apart from these."""
        shift = int(self.groups.max()) + 1 if len(self) else 0
        return Facts(
            np.concatenate([self.heads, other.heads]),
            np.concatenate([self.relations, other.relations]),
            np.concatenate([self.tails, other.tails]),
            np.concatenate([self.groups, other.groups + shift]),
        )

    @classmethod
    def none(cls) -> Facts:
        empty = np.empty(0, dtype=np.int64)
        return cls(empty, empty, empty, empty)


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """Where facts of one sort come from: which relations, between which entities."""

    relations: IntArray
    heads: Pool
    tails: Pool

    @classmethod
    def between(
        cls, population: Population, relations: IntArray, heads: IntArray, tails: IntArray
    ) -> Layer:
        """Facts of `relations` about `heads`, pointing at `tails`."""
        return cls(
            relations,
            Pool.of(population, heads, population.activity),
            Pool.of(population, tails, population.popularity),
        )

    @property
    def is_empty(self) -> bool:
        return not (len(self.relations) and len(self.heads.members) and len(self.tails.members))


def fill(
    known: Facts,
    layer: Layer,
    count: int,
    population: Population,
    vocabulary: Vocabulary,
    words: list[IntArray],
    rng: np.random.Generator,
) -> Facts:
    """`known` and up to `count` more facts from `layer`, distinct in each of `words`.

    `words` maps the world's relations to a view's. A layer with no room for so many gives fewer.
    """
    wanted = len(known) + count
    facts = known
    for _ in range(_ROUNDS):
        missing = wanted - len(facts)
        if missing <= 0 or layer.is_empty:
            break
        drawn = draw_facts(layer, missing + missing // 20 + 8, population, vocabulary, rng)
        facts = distinct(facts.join(drawn), words, population.size)
    return facts.take(np.arange(min(wanted, len(facts))))


def distinct(facts: Facts, words: list[IntArray], entities: int) -> Facts:
    """The facts without loops, and without those that repeat an earlier one in some of `words`."""
    facts = facts.take(facts.heads != facts.tails)
    for word in words:
        triples = (facts.heads * (int(word.max()) + 1) + word[facts.relations]) * entities
        _, first = np.unique(triples + facts.tails, return_index=True)
        if len(first) < len(facts):
            facts = facts.take(np.sort(first))
    return facts


def draw_facts(
    layer: Layer,
    count: int,
    population: Population,
    vocabulary: Vocabulary,
    rng: np.random.Generator,
) -> Facts:
    """About `count` facts in random order; a few may occur twice."""
    weight = vocabulary.weight[layer.relations]
    sizes = rng.multinomial(count, weight / weight.sum())
    parts: dict[int, Facts] = {}
    groups = 0
    for relation, size in zip(layer.relations.tolist(), sizes.tolist(), strict=True):
        if not size:
            continue
        parent = parts.get(int(vocabulary.parent[relation]))
        if parent is not None:
            repeated = round(size * float(vocabulary.repeated_share[relation]))
            part = _repeat(parent, relation, repeated, bool(vocabulary.inverse[relation]), rng)
        else:
            part = Facts.none()
        if size > len(part):
            heads, tails, fresh = _draw_pairs(
                layer, relation, size - len(part), population, vocabulary, rng
            )
            fresh += groups
            groups += size
            part = Facts(
                np.concatenate([part.heads, heads]),
                np.full(len(part) + len(heads), relation),
                np.concatenate([part.tails, tails]),
                np.concatenate([part.groups, fresh]),
            )
        parts[relation] = part
    if not parts:
        return Facts.none()
    drawn = Facts(
        np.concatenate([part.heads for part in parts.values()]),
        np.concatenate([part.relations for part in parts.values()]),
        np.concatenate([part.tails for part in parts.values()]),
        np.concatenate([part.groups for part in parts.values()]),
    )
    return drawn.take(rng.permutation(len(drawn)))


def _repeat(
    parent: Facts, relation: int, size: int, inverse: bool, rng: np.random.Generator
) -> Facts:
    """Up to `size` facts of `parent`, said once more with `relation`."""
    chosen = parent.take(rng.permutation(len(parent))[:size])
    ends = (chosen.tails, chosen.heads) if inverse else (chosen.heads, chosen.tails)
    return Facts(ends[0], np.full(len(chosen), relation), ends[1], chosen.groups)


def _draw_pairs(
    layer: Layer,
    relation: int,
    size: int,
    population: Population,
    vocabulary: Vocabulary,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray, IntArray]:
    """Heads, tails and groups of about `size` facts, as functional as their relation is."""
    window = float(vocabulary.lowest[relation]), float(vocabulary.highest[relation])
    familial = vocabulary.tail_share[relation] < FAMILIAL
    mentions = max(1, round(size / population.mean_family)) if familial else size
    ends = []
    for pool, kind, share, concentration in (
        (layer.heads, vocabulary.domain, vocabulary.head_share, HEAD_CONCENTRATION),
        (layer.tails, vocabulary.range, vocabulary.tail_share, vocabulary.concentration[relation]),
    ):
        wanted = min(mentions, max(1, round(size * float(share[relation]))))
        span = pool.span(int(kind[relation]), *window, wanted + wanted // 2)
        chosen = pool.draw(rng, wanted, span)
        # Each once, so that their number is right; then the first ones again and again.
        extra = len(chosen) * rng.random(mentions - len(chosen)) ** concentration
        entities = np.concatenate([chosen, chosen[extra.astype(np.int64)]])
        spots = _scatter(entities, window, population, rng)
        ends.append(entities[np.argsort(spots, kind="stable")])
    heads, tails = ends
    groups = np.arange(mentions)
    if familial:
        heads, groups = population.relatives(heads)
        tails = tails[groups]
    return heads, tails, groups


def _scatter(
    entities: IntArray,
    window: tuple[float, float],
    population: Population,
    rng: np.random.Generator,
) -> FloatArray:
    """A position for each mention of an entity: heads and tails of like positions are joined.

    A mention lies near the entity; the mentions of a hub spread as far around as their number
    needs, or they would push all others away.
    """
    size = len(entities)
    community = population.community(entities)
    left, right = population.borders[community], population.borders[community + 1]
    spots = population.position[entities] + FRAY * (right - left) * rng.normal(size=size)
    mentions = np.bincount(entities)[entities] if size > 64 else np.ones(size)
    spots += rng.laplace(size=size) * (mentions - 1) / size * (window[1] - window[0])
    stray = rng.random(size) >= LOCAL_SHARE
    spots[stray] = rng.uniform(*window, size)[stray]
    return spots
