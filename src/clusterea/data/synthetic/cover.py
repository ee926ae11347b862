"""`choose` and `introduce`: exact numbers of facts that cover every entity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clusterea.data.synthetic.facts import Facts
from clusterea.data.synthetic.population import FloatArray, Population
from clusterea.data.synthetic.vocabulary import Vocabulary
from clusterea.types import IntArray

BoolArray = NDArray[np.bool_]


def choose(
    facts: Facts,
    count: int,
    lacking: BoolArray,
    rng: np.random.Generator,
    *,
    wordless: BoolArray | None = None,
    word: IntArray | None = None,
    odds: FloatArray | None = None,
) -> IntArray:
    """`count` random positions, with one fact first for each of `lacking` that has any.

    So the result touches at least min(count, lacking entities that occur) of them. With `wordless`,
    each of those words of a view gets its fact too (`word` maps relations to words). `odds` makes
    some facts likelier than others.
    """
    luck = rng.exponential(size=int(facts.groups.max()) + 1 if len(facts) else 0)[facts.groups]
    order = np.argsort(luck if odds is None else luck / odds, kind="stable")
    backwards = order[::-1]
    needed = np.zeros(len(facts), dtype=bool)
    first = np.full(len(lacking), -1, dtype=np.int64)
    # Backwards: of several assignments to one index the last one stays.
    first[facts.tails[backwards]] = backwards
    first[facts.heads[backwards]] = backwards
    needed[first[lacking & (first >= 0)]] = True
    if wordless is not None and word is not None:
        first_of_word = np.full(len(wordless), -1, dtype=np.int64)
        first_of_word[word[facts.relations[backwards]]] = backwards
        needed[first_of_word[wordless & (first_of_word >= 0)]] = True
    needed_first = needed[order]
    return np.concatenate([order[needed_first], order[~needed_first]])[:count]


def introduce(
    strangers: IntArray,
    company: IntArray,
    relations: IntArray,
    population: Population,
    vocabulary: Vocabulary,
    rng: np.random.Generator,
) -> Facts:
    """One fact for each of `strangers` as its head, with a popular entity of `company` as tail.

    The relation is one of `relations` that their types allow, if there is such a one.
    """
    heads = strangers
    if not len(heads):
        return Facts.none()
    weight = vocabulary.weight[relations]
    chosen = np.empty(len(heads), dtype=np.int64)
    for kind in np.unique(population.kind[heads]).tolist():
        those = population.kind[heads] == kind
        fitting = np.where(vocabulary.domain[relations] == kind, weight, 0.0)
        share = fitting if fitting.any() else weight
        chosen[those] = rng.choice(relations, size=int(those.sum()), p=share / share.sum())
    # The most popular of a few entities drawn nearby.
    positions = np.argsort(population.position[company], kind="stable")
    near = np.searchsorted(population.position[company][positions], population.position[heads])
    reach = max(2, len(company) // 100)
    tails = _someone(company, positions, near, reach, rng)
    for _ in range(7):
        other = _someone(company, positions, near, reach, rng)
        better = (population.popularity[other] > population.popularity[tails]) & (other != heads)
        tails = np.where(better | (tails == heads), other, tails)
    loop = tails == heads
    tails[loop] = company[(np.searchsorted(company, tails[loop]) + 1) % len(company)]
    return Facts(heads, chosen, tails, np.arange(len(heads)))


def _someone(
    company: IntArray, positions: IntArray, near: IntArray, reach: int, rng: np.random.Generator
) -> IntArray:
    step = rng.integers(-reach, reach + 1, size=len(near))
    chosen: IntArray = company[positions[(near + step) % len(company)]]
    return chosen
