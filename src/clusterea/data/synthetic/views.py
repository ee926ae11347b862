"""`draw_view`: the facts of the world that one side states."""

from __future__ import annotations

import numpy as np

from clusterea.data.synthetic.cover import choose, introduce
from clusterea.data.synthetic.facts import Facts, Layer, distinct, fill
from clusterea.data.synthetic.shapes import PairShape
from clusterea.data.synthetic.world import World
from clusterea.types import IntArray

FAMILY_ODDS_SPREAD = 1.3  # of log(odds that a fact about a family is kept)
RELATION_ODDS_SPREAD = 0.7  # of log(odds that a fact of a relation is kept)
LONELY_HEADS = 2 / 3  # of facts about entities without counterpart: those where it is the head


def draw_view(world: World, shape: PairShape, rng: np.random.Generator) -> Facts:
    """Exactly the triples of the source view: the shared facts it keeps, then its own.

    Every entity and every word of the view occurs in one of them at least. For the target view,
    swap `world` and `shape`.
    """
    population, vocabulary, shared = world.population, world.vocabulary, world.shared
    members, word = population.members.source, vocabulary.words.source
    everyone = np.zeros(population.size, dtype=bool)
    everyone[members] = True
    # A view states many facts of some entities and relations, and few of others.
    odds = rng.lognormal(sigma=FAMILY_ODDS_SPREAD, size=population.size)[
        population.family[shared.heads]
    ]
    odds *= rng.lognormal(sigma=RELATION_ODDS_SPREAD, size=vocabulary.size)[shared.relations]
    kept_count = int(shape.kept_share.source * len(shared))
    kept = shared.take(choose(shared, kept_count, everyone, rng, odds=odds))
    own = _draw_own(world, kept, shape.triples.source, rng)

    lacking = everyone
    lacking[kept.heads] = lacking[kept.tails] = False
    wordless = np.ones(shape.relations.source, dtype=bool)
    wordless[word[kept.relations]] = False
    strangers = lacking.copy()
    strangers[own.heads] = strangers[own.tails] = False
    unsaid = wordless.copy()
    unsaid[word[own.relations]] = False

    known = np.flatnonzero(word >= 0)
    newcomers = introduce(np.flatnonzero(strangers), members, known, population, vocabulary, rng)
    unsaid[word[newcomers.relations]] = False
    examples = _exemplify(np.flatnonzero(unsaid), members, word, rng)
    # There is room for them: `PairShape` and `draw_world` leave a triple for each entity and word.
    count = shape.triples.source - len(kept) - len(newcomers) - len(examples)
    chosen = choose(own, count, lacking, rng, wordless=wordless, word=word)
    return kept.join(own.take(chosen)).join(newcomers).join(examples)


def _draw_own(world: World, kept: Facts, triples: int, rng: np.random.Generator) -> Facts:
    """Facts only the source view states, enough to reach `triples` together with `kept`."""
    population, vocabulary = world.population, world.vocabulary
    members, (word, foreign_word) = population.members.source, vocabulary.words
    known = np.flatnonzero(word >= 0)
    only_here = np.flatnonzero((word >= 0) & (foreign_word < 0))
    common, lonely = np.split(members, [population.common])

    rest = triples - len(kept)
    weight = vocabulary.weight
    of_lacked_words = int(triples * weight[only_here].sum() / weight[known].sum())
    of_lonely = max(0, rest - of_lacked_words) if len(lonely) else 0
    by_lonely = int(of_lonely * LONELY_HEADS)
    plan = [
        (Layer.between(population, known, lonely, members), by_lonely),
        (Layer.between(population, known, common, lonely), of_lonely - by_lonely),
        (Layer.between(population, only_here, members, members), rest - of_lonely),
    ]
    facts = kept
    for layer, count in plan:
        facts = fill(facts, layer, count, population, vocabulary, [word], rng)
    while len(facts) < triples:  # any fact will do; half of all possible ones are free
        words = rng.integers(word.max() + 1, size=2 * (triples - len(facts)))
        facts = distinct(facts.join(_exemplify(words, members, word, rng)), [word], population.size)
    return facts.take(np.arange(len(kept), triples))


def _exemplify(
    words: IntArray, members: IntArray, word: IntArray, rng: np.random.Generator
) -> Facts:
    """One fact between two random members for each of `words`."""
    relation_of = np.zeros(int(word.max()) + 1, dtype=np.int64)
    known = np.flatnonzero(word >= 0)
    relation_of[word[known]] = known
    heads = rng.integers(len(members), size=len(words))
    others = (heads + rng.integers(1, len(members), size=len(words))) % len(members)
    groups = np.arange(len(words))
    return Facts(members[heads], relation_of[words], members[others], groups)
