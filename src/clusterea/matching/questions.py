"""`questions`: the pairs whose answers help most, and a random share of the links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from numpy.typing import NDArray

from clusterea.graph.distinct_neighbors import Neighbors
from clusterea.matching.cell_rows import CellRows
from clusterea.matching.firsts import Firsts
from clusterea.numerics.cells import open_entities, without_pairs
from clusterea.numerics.ties import mixed
from clusterea.seeding import derived_seed
from clusterea.types import (
    Alignment,
    AlignmentTask,
    Answer,
    Decisions,
    IntArray,
    Pair,
    Question,
    Similarity,
)
from clusterea.types.judgments import Judgment, judgments

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

RANDOM_SHARE = 0.25  # 100 questions then tell the precision within 0.2 or less
# How often a best candidate that was not linked is right, for each unit of its score: measured with
# few seeds, where the score of a link is about the probability that it is right.
UNLINKED = 0.2
OWN_VALUE = 1.0  # of an answer for its two entities, beside that for their neighbors
NEAR_VALUE = 0.5  # left to a question once a neighbor was asked about: that answer helps here too
NEVER = -np.inf  # the value of a question that is not to be chosen


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """The pair to ask about for each source entity that may be asked about."""

    sources: IntArray  # (n,), distinct
    targets: IntArray  # (n,): of the link, or else the best candidate
    measures: Floats  # (n,): the confidence of the link, or the score of the candidate
    is_link: Mask  # (n,)

    def take(self, kept: IntArray | Mask) -> Options:
        """The options at these positions, or those of a mask."""
        return Options(
            self.sources[kept], self.targets[kept], self.measures[kept], self.is_link[kept]
        )


def questions(
    similarity: Similarity,
    alignment: Alignment,
    task: AlignmentTask,
    count: int,
    *,
    answers: Sequence[Answer] = (),
    pending: Sequence[Question] = (),
    random_share: float = RANDOM_SHARE,
    seed: int = 0,
) -> list[Question]:
    """At most `count` questions, in the order to ask them; the first ones don't depend on `count`.

    Most are chosen by `values`, and no source entity is asked about twice. The random share goes
    through the links in a fixed order, by a hash of the source's name. It asks first what comes
    first in this order and has no answer yet, also after the links have changed.

    Links that come early in this order, `random_share` of all, are reserved: they are never chosen.
    Otherwise wrong links would leave the sample because they are chosen before it reaches them.

    Args:
        similarity: Scores of source × target.
        alignment: The links.
        task: The graphs. Entities of seeds, and those that are never linked, are not asked about.
        count: Most questions.
        answers: What was answered. A pair that these decide, or are unsure of, is not asked again.
        pending: Questions that will be asked before these. They are not asked again.
        random_share: The share of random questions, in [0, 1].
        seed: Of the random order.
    """
    if not 0 <= random_share <= 1:
        raise ValueError(f"random_share must be a number in [0, 1]. Got {random_share} instead.")
    own_seed = derived_seed(seed, "questions")
    held = Decisions.of(answers)
    options = _options(similarity, alignment, task, held, own_seed)
    told = judgments(np.stack([options.sources, options.targets], axis=1), answers)
    neighbors = task.graphs.map(Neighbors.of)
    value = values(options, _doubts(options, told, task, held), neighbors)
    is_open = told == Judgment.UNKNOWN
    options, value = options.take(is_open), value[is_open]
    ranks = random_order(task, seed)[options.sources]
    # From here on positions tell the order of equal values, not ids.
    order = np.lexsort([ranks, -value])
    options, value, ranks = options.take(order), value[order], ranks[order]
    is_reserved = options.is_link & (ranks < random_share * 2.0**64)
    choice = _Choice(options, np.where(is_reserved, NEVER, value), neighbors, task.num_entities)
    choice.leave_out(pending)
    links = options.is_link.nonzero()[0]
    sample = iter(links[ranks[links].argsort(kind="stable")].tolist())
    since = _since_random([*answers, *pending])
    return list(_interleaved(choice, sample, count, Fraction(random_share), since))


def random_order(task: AlignmentTask, seed: int = 0) -> NDArray[np.uint64]:
    """(source entities,): hashes that order the random questions, the least first."""
    keys = torch.from_numpy(task.tie_keys.source.copy())
    return mixed(keys, derived_seed(seed, "questions")).numpy().view(np.uint64)


def values(options: Options, doubts: Pair[Floats], neighbors: Pair[Neighbors]) -> Floats:
    """(options,): how much the answer to each question helps; 0 or more.

    This is p (1 - p) · (own value + √dependent), where p is the probability that the pair is right
    and `dependent` sums, over the neighbors of both entities, the neighbor's doubt / its number of
    neighbors: the match of a neighbor with many others depends little on this one.

    All operations are rounded exactly, so equal questions have equal values.

    Args:
        options: The pairs.
        doubts: (entities,) of each side: how unsure the match of each entity is, in [0, 1].
        neighbors: Of each side.
    """
    source, target = neighbors.zip(doubts).map(lambda side: side[0].shares(side[1]))
    dependent = source[options.sources] + target[options.targets]
    chance = np.clip(options.measures, 0, 1)
    # A candidate that has a sure link to another source is probably not the right one.
    free = np.where(options.is_link, 1.0, UNLINKED * doubts.target[options.targets])
    chance = chance * free
    found: Floats = chance * (1 - chance) * (OWN_VALUE + np.sqrt(dependent))
    return found


def _options(
    similarity: Similarity, alignment: Alignment, task: AlignmentTask, held: Decisions, seed: int
) -> Options:
    """The links and best candidates of all source entities that are not decided."""
    decided = (
        Pair(*np.concatenate([task.seeds, held.accepted]).T)
        .zip(task.never_linked.zip(held.alone).map(np.concatenate))
        .map(np.concatenate)
    )
    links, sure = alignment.links.cpu().numpy(), alignment.confidence.cpu().double().numpy()
    kept = np.sort(np.unique(links[:, 0], return_index=True)[1])
    kept = kept[~np.isin(links[kept, 0], decided.source)]
    links, sure = links[kept], sure[kept]
    similarity = without_pairs(similarity, task.rejected)
    closed = Pair(np.concatenate([decided.source, links[:, 0]]), decided.target)
    ties = task.tie_keys.map(lambda keys: torch.from_numpy(keys.copy()))
    is_open = open_entities(similarity, *closed.map(torch.tensor))
    cells = CellRows.of(similarity, 0, similarity.num_entities.source)
    best = Firsts.of(cells, is_open, ties, seed).firsts.source
    source, target, scores = (each.cpu().numpy() for each in best)
    return Options(
        np.concatenate([links[:, 0], source]),
        np.concatenate([links[:, 1], target]),
        np.concatenate([sure, scores.astype(np.float64)]),
        np.repeat([True, False], [len(links), len(source)]),
    )


def _doubts(
    options: Options, told: NDArray[np.int8], task: AlignmentTask, held: Decisions
) -> Pair[Floats]:
    """(entities,) of each side: 1 - confidence of its link; 1 without one; 0 if it is decided."""
    doubts = task.num_entities.map(np.ones)
    linked = options.take(options.is_link & (told != Judgment.WRONG))
    for doubt, ends in doubts.zip(Pair(linked.sources, linked.targets)):
        np.minimum.at(doubt, ends, 1 - linked.measures)
    for column, (doubt, (never, alone)) in enumerate(doubts.zip(task.never_linked.zip(held.alone))):
        for ids in (task.seeds[:, column], held.accepted[:, column], never, alone):
            doubt[ids] = 0
    return doubts


class _Choice:
    """Chooses the most valuable question, again and again, and lowers the value of those near it.

    The options must be in the order in which equal values are chosen.
    """

    def __init__(
        self,
        options: Options,
        value: Floats,
        neighbors: Pair[Neighbors],
        num_entities: Pair[int],
    ) -> None:
        self._options, self._value, self._neighbors = options, value, neighbors
        self._is_asked = np.zeros(len(value), dtype=np.bool_)
        self._of_source = np.full(num_entities.source, -1)
        self._of_source[options.sources] = np.arange(len(value))
        self._by_target = options.targets.argsort(kind="stable")
        counts = np.bincount(options.targets, minlength=num_entities.target)
        self._begins = np.concatenate([[0], counts.cumsum()])

    def best(self) -> int | None:
        """The position of the most valuable question; None if no question is left."""
        if not len(self._value):
            return None
        at = int(self._value.argmax())
        return None if self._value[at] == NEVER else at

    def first(self, positions: Iterator[int]) -> int | None:
        """The first of the positions that was not asked."""
        return next((at for at in positions if not self._is_asked[at]), None)

    def leave_out(self, pending: Sequence[Question]) -> None:
        """Counts these as asked."""
        for at in self._of_source[[each.source for each in pending]].tolist() if pending else ():
            if at >= 0:
                self.ask(at, is_random=False)

    def ask(self, at: int, *, is_random: bool) -> Question:
        """The question. It is not chosen again, nor is another with the same target."""
        options, value = self._options, self._value
        source, target = int(options.sources[at]), int(options.targets[at])
        self._is_asked[at] = True
        value[at] = NEVER
        value[self._with_targets(np.array([target]))] = NEVER
        own = self._of_source[self._neighbors.source.of_entity(source)]
        others = self._with_targets(self._neighbors.target.of_entity(target))
        value[np.union1d(own[own >= 0], others)] *= NEAR_VALUE
        sure, is_link = float(options.measures[at]), bool(options.is_link[at])
        return Question(source, target, sure, is_link=is_link, is_random=is_random)

    def _with_targets(self, targets: IntArray) -> IntArray:
        """The positions of all options with these targets."""
        begins, ends = self._begins[targets], self._begins[targets + 1]
        counts = ends - begins
        within = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        found: IntArray = self._by_target[np.repeat(begins, counts) + within]
        return found


def _interleaved(
    choice: _Choice, sample: Iterator[int], count: int, share: Fraction, since: int
) -> Iterator[Question]:
    """The questions: of 4, the last is random if the share is 1/4."""
    share = share.limit_denominator(1000)  # so that ten tenths are one
    credit = min(since * share, 1 - share)
    for _ in range(count):
        credit += share
        is_random = credit >= 1
        at = choice.first(sample) if is_random else choice.best()
        if at is None:
            is_random = not is_random and share > 0
            at = choice.first(sample) if is_random else choice.best()
        if at is None:
            return
        credit -= int(is_random)
        yield choice.ask(at, is_random=is_random)


def _since_random(asked: Sequence[Answer | Question]) -> int:
    """How many came after the last random one."""
    randoms = [at for at, each in enumerate(asked, start=1) if each.is_random]
    return len(asked) - (randoms[-1] if randoms else 0)
