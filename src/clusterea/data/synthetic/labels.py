"""`draw_labels`: labels for the entities of both views, noisy copies of true ones."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clusterea.data.synthetic.population import Population
from clusterea.data.synthetic.typos import misspell
from clusterea.data.synthetic.words import draw_words
from clusterea.errors import InputError
from clusterea.types import IntArray, Pair, Texts

BoolArray = NDArray[np.bool_]

LENGTH_SHARES = np.array([0.15, 0.5, 0.25, 0.1])  # of labels of one to four words
MOST_WORDS = len(LENGTH_SHARES)
FEWEST_IN_VOCABULARY = 1_000
ENTITIES_A_WORD = 4  # the vocabulary has a word for so many entities
# The word of rank i is drawn with a frequency of about 1 / (i + this), by Zipf's law. The most
# common one is then in some 3 % of the labels of a large pair.
RANK_SHIFT = 5.0
NAMESAKES_END = 0.7  # groups of entities with one label are 1 + geometric in size
UNCHANGED, TYPO, REORDERED, SHORTENED, QUALIFIED = range(5)
CHANGE_SHARES = np.array([0.0, 0.4, 0.2, 0.2, 0.2])
# By the type of the entity, so that a qualifier on both sides is the same one.
QUALIFIERS = (
    *("politician", "film", "village", "band", "album", "river"),
    *("song", "genus", "genre", "ship", "novel", "station"),
)


@dataclass(frozen=True, slots=True)
class LabelShape:
    """How many entities have labels, and how far the labels tell who is who."""

    missing: float = 0.1  # share of each side's entities without a label
    ambiguous: float = 0.05  # share of the world's entities that share their label with another
    noise: float = 0.3  # share of each side's labels that are changed

    def __post_init__(self) -> None:
        for each in fields(self):
            value: Any = getattr(self, each.name)
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, float, np.integer, np.floating))
                or not 0 <= value <= 1
            ):
                name = _NAMES[each.name]
                raise InputError(f"{name} must be a number in [0, 1]. Got {value!r} instead.")


_NAMES = {
    "missing": "share of missing labels",
    "ambiguous": "share of ambiguous labels",
    "noise": "label noise",
}


def draw_labels(
    population: Population, ids: Pair[IntArray], shape: LabelShape, rng: np.random.Generator
) -> Pair[Texts]:
    """At most one label for each entity of each view, by its id in the view.

    `ids` has the id of each of `population.members`. True labels differ, but for the ambiguous
    ones. A view's label is changed independently of the other view's.
    """
    vocabulary = draw_words(_vocabulary_size(population.size), rng)
    words = _draw_true_labels(population.size, rng)
    words = words[_namesakes(population.size, shape.ambiguous, rng)]
    sides = []
    for members, own_ids in zip(population.members, ids, strict=True):
        labeled = ~_sample(len(members), shape.missing, rng)
        entities = members[labeled]
        qualifiers = population.kind[entities] % len(QUALIFIERS)
        texts = _noisy_copies(words[entities], qualifiers, vocabulary, shape.noise, rng)
        sides.append(Texts.of_rows(own_ids[labeled], texts, len(members)))
    return Pair(*sides)


def _vocabulary_size(entities: int) -> int:
    return max(FEWEST_IN_VOCABULARY, entities // ENTITIES_A_WORD)


def _sample(size: int, share: float, rng: np.random.Generator) -> BoolArray:
    """(size,): True for exactly `share` of them, up to rounding."""
    chosen = np.zeros(size, dtype=bool)
    chosen[rng.permutation(size)[: round(share * size)]] = True
    return chosen


def _draw_true_labels(size: int, rng: np.random.Generator) -> IntArray:
    """(size, words): the words of distinct labels, by their rank; -1 after the last one."""
    lengths = rng.choice(MOST_WORDS, size=size, p=LENGTH_SHARES) + 1
    words = _draw_ranks(lengths, size, rng)
    while len(repeated := _repeated(words)):
        # There are few common words but many combinations, so a longer label is likely to be new.
        lengths[repeated] = np.minimum(lengths[repeated] + 1, MOST_WORDS)
        words[repeated] = _draw_ranks(lengths[repeated], size, rng)
    return words


def _draw_ranks(lengths: IntArray, entities: int, rng: np.random.Generator) -> IntArray:
    """(labels, words): words by Zipf's law, -1 after the last one of each label."""
    span = (_vocabulary_size(entities) + RANK_SHIFT) / RANK_SHIFT
    drawn = RANK_SHIFT * (span ** rng.random((len(lengths), MOST_WORDS)) - 1)
    return np.where(np.arange(MOST_WORDS) < lengths[:, None], drawn.astype(np.int64), -1)


def _repeated(words: IntArray) -> IntArray:
    """The labels that equal an earlier one, or have a word twice."""
    ordered = np.sort(words, axis=1)
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    # A hash: two labels that collide by chance only make one of them be drawn again.
    keys = np.zeros(len(words), dtype=np.uint64)
    for column in words.T.astype(np.uint64):
        keys = keys * np.uint64(0x9E3779B97F4A7C15) + column
    first = np.unique(keys, return_index=True)[1]
    again = np.ones(len(words), dtype=bool)
    again[first] = False
    return np.flatnonzero(again | twice)


def _namesakes(size: int, share: float, rng: np.random.Generator) -> IntArray:
    """(size,): the entity whose label each one has, itself for all but `share` of them."""
    whose = np.arange(size)
    count = round(share * size)
    if count == 0:
        return whose
    count = max(2, count)  # nobody shares a label alone
    chosen = rng.permutation(size)[:count]
    sizes = 1 + rng.geometric(NAMESAKES_END, count)
    starts = np.cumsum(sizes) - sizes
    starts = starts[starts < count - 1]  # a last one who would be alone joins the group before
    group = np.searchsorted(starts, np.arange(count), side="right") - 1
    whose[chosen] = chosen[starts[group]]
    return whose


def _noisy_copies(
    words: IntArray,
    qualifiers: IntArray,
    vocabulary: pa.Array,
    noise: float,
    rng: np.random.Generator,
) -> pa.Array:
    """The texts of labels, of which the share `noise` is changed in one way each."""
    size, lengths = len(words), (words >= 0).sum(axis=1)
    change = rng.choice(len(CHANGE_SHARES), size=size, p=CHANGE_SHARES)
    change[(lengths == 1) & ((change == REORDERED) | (change == SHORTENED))] = TYPO
    change[~_sample(size, noise, rng)] = UNCHANGED

    columns = np.broadcast_to(np.arange(MOST_WORDS), words.shape)
    # 0 … lengths - 1 turned by 1 … lengths - 1, which never gives the same order.
    turn = 1 + (rng.random(size) * (lengths - 1)).astype(np.int64)
    turned = np.where(
        columns < lengths[:, None], (columns + turn[:, None]) % lengths[:, None], columns
    )
    dropped = (rng.random(size) * lengths).astype(np.int64)
    shorter = columns + (columns >= dropped[:, None])
    columns = np.where((change == REORDERED)[:, None], turned, columns)
    columns = np.where((change == SHORTENED)[:, None], shorter, columns)
    padded = np.column_stack([words, np.full(size, -1)])
    words = np.take_along_axis(padded, columns, axis=1)

    in_parentheses = pa.array([f"({word})" for word in QUALIFIERS], pa.large_string())
    parts = [vocabulary.take(pa.array(column, mask=column < 0)) for column in words.T]
    parts.append(in_parentheses.take(pa.array(qualifiers, mask=change != QUALIFIED)))
    separator = pa.scalar(" ", pa.large_string())
    texts = pc.binary_join_element_wise(*parts, separator, null_handling="skip")
    misspelled = pa.array(change == TYPO)
    return pc.replace_with_mask(texts, misspelled, misspell(texts.filter(misspelled), rng))
