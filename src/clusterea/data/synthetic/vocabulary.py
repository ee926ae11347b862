"""`Vocabulary`: the world's relations, and their names in each view."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clusterea.data.synthetic.population import TYPE_SHARES, FloatArray
from clusterea.types import IntArray, Pair

# log(size of relation i of n) falls with the root of i / n: fits IDS15K from the first to the last.
SIZE_FALL = 8.5
SIZE_NOISE = 0.15
MANY_TO_ONE, MANY_TO_MANY, ONE_TO_ONE = 0, 1, 2
KINDS = np.repeat([MANY_TO_ONE, MANY_TO_MANY, ONE_TO_ONE], [5, 2, 1])  # of eight next in size
# How often a type is a tail: places, organizations and genres more than persons.
RANGE_WEIGHTS = np.array([0.08, 0.10, 0.26, 0.16, 0.04, 0.10, 0.03, 0.08, 0.05, 0.05, 0.03, 0.02])
WINDOWS = np.array([1.0, 0.5, 0.25, 0.1])  # share of all positions where a relation is in use
# Of eight next in size, those that repeat the pairs of another, as birthPlace and hometown do.
COMPANIONS = np.repeat([True, False], [4, 4])
REPEATED = (0.6, 1.0)  # how much of such a relation is repetition
LACKED_SHARE = 0.06  # of the smaller vocabulary: relations the other view has no word for
MERGED_SHARE = 0.06  # of a vocabulary: words that stand for two relations of the world


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The relations of the world, the largest first, each array with one entry a relation."""

    weight: FloatArray  # its share of all facts, up to a factor
    domain: IntArray  # type of its heads
    range: IntArray  # type of its tails
    head_share: FloatArray  # distinct heads a triple: its functionality
    tail_share: FloatArray  # distinct tails a triple: its inverse functionality
    concentration: FloatArray  # 1: tails alike; 3: the first few take most
    lowest: FloatArray  # positions where it is in use, from here …
    highest: FloatArray  # … to here
    parent: IntArray  # the relation whose pairs it repeats, -1 for none
    inverse: NDArray[np.bool_]  # whether it repeats them the other way round
    repeated_share: FloatArray  # how many of its facts repeat one of the parent's
    words: Pair[IntArray]  # the view's own relation, -1 where it has no word for this one

    @property
    def size(self) -> int:
        return len(self.weight)

    def swap(self) -> Vocabulary:
        """The same relations with the views' words exchanged."""
        return replace(self, words=self.words.swap())


def draw_vocabulary(relations: Pair[int], rng: np.random.Generator) -> Vocabulary:
    """Relations of the world such that the views have exactly `relations` words for them."""
    words, splits = _draw_words(relations, rng)
    size = len(words.source)
    ranks = np.arange(1, size + 1)
    fall = -SIZE_FALL * np.sqrt((ranks + 1) / size)
    weight = np.sort(np.exp(fall + rng.normal(0, SIZE_NOISE, size)))[::-1]
    kind = _deal(KINDS, size, rng)
    head_share = np.choose(
        kind, [rng.uniform(*bounds, size) for bounds in ((0.65, 1.0), (0.3, 0.5), (0.95, 1.0))]
    )
    # The very largest relations (country, birthPlace) point at few things.
    most = np.where(ranks <= max(1, size // 40), 0.2, 0.5)
    few = np.exp(rng.uniform(np.log(0.04), np.log(most)))
    tail_share = np.where(kind == ONE_TO_ONE, rng.uniform(0.95, 1.0, size), few)
    domain = _draw_domains(weight * head_share, rng)
    ranges = rng.choice(len(RANGE_WEIGHTS), size=size, p=RANGE_WEIGHTS)
    ranges = np.where(kind == ONE_TO_ONE, domain, ranges)
    widths = rng.choice(WINDOWS, size=size, p=[0.4, 0.25, 0.2, 0.15])
    lowest = rng.random(size) * (1 - widths)
    parent = _draw_companions(kind, rng)
    profile = [domain, ranges, head_share, tail_share, lowest, widths]
    for part, whole in splits:  # two words of one view for what is one thing to the other
        for column in profile:
            column[part] = column[whole]
    return Vocabulary(
        weight=weight,
        domain=domain,
        range=ranges,
        head_share=head_share,
        tail_share=tail_share,
        concentration=rng.uniform(1.3, 2.4, size),
        lowest=lowest,
        highest=lowest + widths,
        parent=parent,
        inverse=(parent >= 0) & (kind[parent] == ONE_TO_ONE),
        repeated_share=rng.uniform(*REPEATED, size),
        words=words,
    )


def _draw_words(
    relations: Pair[int], rng: np.random.Generator
) -> tuple[Pair[IntArray], list[tuple[int, int]]]:
    """What each view calls each relation, and which of them are parts of another one."""
    smaller, larger = sorted(relations)
    lacked_by_larger = int(LACKED_SHARE * smaller)
    merged_by_larger = int(MERGED_SHARE * smaller)
    size = larger + lacked_by_larger + merged_by_larger
    surplus = size - smaller
    lacked_by_smaller = min(surplus // 2, larger // 4)
    lacked = Pair(lacked_by_larger, lacked_by_smaller)
    if relations.source < relations.target:
        lacked = lacked.swap()
    # Never the same one twice, nor the largest: both views have a word for these.
    minor = rng.permutation(np.arange(size // 10, size))[: sum(lacked)]
    lacks = Pair(minor[: lacked.source], minor[lacked.source :])
    splits: list[tuple[int, int]] = []
    sides = []
    for missing, count in zip(lacks, relations, strict=True):
        words = np.full(size, -1, dtype=np.int64)
        known = np.setdiff1d(np.arange(size), missing)
        own = np.sort(rng.choice(known, size=count, replace=False))
        words[own] = np.arange(count)
        merged = np.setdiff1d(known, own)
        whole = rng.choice(own, size=len(merged))
        words[merged] = words[whole]
        splits += [(int(a), int(b)) for a, b in zip(merged[::2], whole[::2], strict=True)]
        sides.append(words)
    return Pair(*sides), splits


def _draw_domains(load: FloatArray, rng: np.random.Generator) -> IntArray:
    """A type for each relation's heads, so that all types have about as many facts."""
    said = np.zeros(len(TYPE_SHARES))
    domains = np.empty(len(load), dtype=np.int64)
    for relation, amount in enumerate(load):
        after = (said + amount) / TYPE_SHARES * rng.lognormal(sigma=0.5, size=len(said))
        domains[relation] = after.argmin()
        said[domains[relation]] += amount
    return domains


def _deal(cards: NDArray[Any], size: int, rng: np.random.Generator) -> NDArray[Any]:
    """`size` of `cards`, shuffled in hands: independent draws would depend on a few giants."""
    hands = np.tile(cards, (size // len(cards) + 1, 1))
    return rng.permuted(hands, axis=1).ravel()[:size]


def _draw_companions(kind: NDArray[Any], rng: np.random.Generator) -> IntArray:
    """For each relation the larger one whose pairs it repeats, or -1."""
    repeats = _deal(COMPANIONS, len(kind), rng)
    repeats[1:] |= kind[:-1] == ONE_TO_ONE  # a successor comes with a predecessor
    repeats[kind == ONE_TO_ONE] = False
    repeats[0] = False
    # The nearest larger one that is no companion: near in size, so most pairs are repeated.
    original = np.where(repeats, 0, np.arange(len(kind)))
    return np.where(repeats, np.maximum.accumulate(original), -1)
