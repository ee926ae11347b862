"""`World`: all facts, of which each view states a part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clusterea.data.synthetic.cover import choose, introduce
from clusterea.data.synthetic.facts import Facts, Layer, fill
from clusterea.data.synthetic.population import Population, draw_population
from clusterea.data.synthetic.shapes import PairShape
from clusterea.data.synthetic.vocabulary import Vocabulary, draw_vocabulary

# Entities with a counterpart are the better-known ones: of the facts of a view where a share s of
# the entities has one, about s to this power is between two of them (s squared, were all alike).
COMMON_POWER = 1.3


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Entities, relations, and the facts that both views could state."""

    population: Population
    vocabulary: Vocabulary
    shared: Facts  # between common entities, of relations both views have a word for

    def swap(self) -> World:
        """The same world with the views exchanged."""
        return World(self.population.swap(), self.vocabulary.swap(), self.shared)


def draw_world(shape: PairShape, rng: np.random.Generator) -> World:
    """A world with as many shared facts as `shape` leaves room for."""
    population = draw_population(shape, rng)
    vocabulary = draw_vocabulary(shape.relations, rng)
    words = list(vocabulary.words)
    both = np.flatnonzero((vocabulary.words.source >= 0) & (vocabulary.words.target >= 0))
    common = np.arange(population.common)
    count = _shared_count(shape, vocabulary)
    layer = Layer.between(population, both, common, common)
    facts = fill(Facts.none(), layer, count, population, vocabulary, words, rng)

    present = np.zeros(population.size, dtype=bool)
    present[facts.heads] = present[facts.tails] = True
    strangers = rng.permutation(common[~present[common]])
    # If there are fewer facts than entities, each fact has a new entity.
    needed = min(len(strangers), max(0, count - int(present.sum())))
    kept = choose(facts, count - needed, present, rng)
    newcomers = introduce(strangers[:needed], common, both, population, vocabulary, rng)
    return World(population, vocabulary, facts.take(kept).join(newcomers))


def _shared_count(shape: PairShape, vocabulary: Vocabulary) -> int:
    """How many shared facts there can be, with enough triples left for what is not shared."""
    known = (vocabulary.words.source >= 0) & (vocabulary.words.target >= 0)
    room = []
    for entities, relations, triples, kept, words in zip(
        shape.entities,
        shape.relations,
        shape.triples,
        shape.kept_share,
        vocabulary.words,
        strict=True,
    ):
        own = words >= 0
        spoken = float(vocabulary.weight[known].sum() / vocabulary.weight[own].sum())
        between = (shape.links / entities) ** COMMON_POWER
        left = triples - (entities - shape.links) - relations
        room.append(min(triples * spoken * between, left) / kept)
    pairs = shape.links * (shape.links - 1) // 2
    return max(0, min(int(min(room)), pairs))
