"""The pairs that encoders learn from: seeds that are not held out, and later pseudo-seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import floor, log2
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clusterea.config import Config
from clusterea.pipeline.store import Made
from clusterea.seeding import derived_seed
from clusterea.types import (
    NO_ENTITIES,
    NO_LINKS,
    AlignmentTask,
    Decisions,
    Embeddings,
    IntArray,
    Links,
    Pair,
    Similarity,
)
from clusterea.types.links import are_among
from clusterea.workspace import recipe_key

if TYPE_CHECKING:
    from torch import Tensor

    from clusterea.fusion import Trust

FEWEST_SEEDS = 50  # with fewer, none are held out
FEWEST_HELD_OUT = FEWEST_SEEDS // 2
ENOUGH = 200  # held-out seeds that suffice
MOST_HELD_OUT = 0.1  # share of the seeds that is no loss, so that one fit is enough


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """The pairs that an encoder learns from: the seeds of a task."""

    task: Made[AlignmentTask]
    round: int = 0  # of self-training; 0: the first pass
    fold: int = 0
    left_out: IntArray | None = None  # sources of the fold's unused pseudo-seeds; None: no folds
    fit: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """The embeddings of one encoder for one lesson."""

    encoder: int  # its index in the config
    lesson: Lesson
    embeddings: Made[Embeddings]


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What one fit learns from, and the seeds that it holds out."""

    known: Made[AlignmentTask]  # without the held-out seeds
    held: IntArray  # (n, 2)
    number: int = 0
    hides: bool = False  # held-out pairs are presumed from equal names: hide these names too
    held_rejected: IntArray = field(default_factory=NO_LINKS.copy)  # (n, 2): held out too

    @property
    def hidden(self) -> Pair[IntArray]:
        """The entities whose names may not be seen where held-out pairs are looked for."""
        return Pair(*self.held.T) if self.hides else NO_ENTITIES

    @property
    def holds_few(self) -> bool:
        """Whether so few pairs are held out that their names are not worth a second fusion."""
        return len(self.held) <= MOST_HELD_OUT * (len(self.held) + len(self.known.value.presumed))

    def first_lesson(self) -> Lesson:
        """The pairs that the first pass learns from: seeds and presumed pairs."""
        task = self.known.value
        if not len(task.presumed):
            return Lesson(self.known, fit=self.number)
        whole = task.with_seeds(task.all_seeds).in_order()
        key = recipe_key("lesson", {"presumed": True}, {"known": self.known.key})
        return Lesson(Made.of(key, whole), fit=self.number)


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """The results of one fit."""

    similarity: Made[Similarity]
    trial: Made[Similarity]  # the same, unless the names of held-out pairs are hidden in it
    contents: Mapping[str, Made[Embeddings]] = field(default_factory=dict)  # names and features
    trust: Made[Trust] | None = None  # in these, where they are compared
    trained: tuple[tuple[int, str], ...] = ()  # the number and the key of each trained encoder


def num_held_out(task: AlignmentTask, config: Config, before: int = 0) -> list[int]:
    """The number of held-out seeds of each fit; a single 0 if none are held out.

    A warm restart holds out no more than the run before it: the others were learned from. Only if
    it should be twice as many, it is.

    Args:
        task: All seeds.
        config: All settings.
        before: The number in the run before, for a warm restart.
    """
    return [min(count, before) if count < 2 * before else count for count in _held(task, config)]


def _held(task: AlignmentTask, config: Config) -> list[int]:
    """The number of held-out seeds of each fit, in a full run."""
    pairs, _ = _judges(task)
    share, seeds = config.matching.held_out, len(pairs)
    if not share or seeds < FEWEST_SEEDS:
        return [0]
    if pairs is task.presumed and not config.encoders():
        return [0]  # names alone: nothing finds a pair whose names are hidden
    asked = int(share * seeds)
    alone = max(asked, ENOUGH)
    is_few = config.self_training.are_few(len(task.all_seeds), task.num_entities)
    if not is_few and alone <= max(share, MOST_HELD_OUT) * seeds:
        return [_step_below(alone)]
    return [_step_below(min(max(asked, ENOUGH // 2), seeds // 2))] * config.matching.fits


def _step_below(count: int) -> int:
    """The largest of 25, 35, 50, 71, 100, 141, … that is not above the count.

    The number of held-out pairs rises in such steps, so that a few more seeds seldom change it.
    """
    steps = floor(2 * log2(count / FEWEST_HELD_OUT) + 1e-9)
    return round(FEWEST_HELD_OUT * 2 ** (steps / 2))


def _judges(task: AlignmentTask) -> tuple[IntArray, IntArray]:
    """The pairs that some are held out of, and the rejected pairs that some are held out of.

    These are the seeds, but not the answers to chosen questions. Such answers teach most, and they
    are harder than other pairs, so the confidence would be too low. If the other seeds are few and
    fewer than presumed pairs, these are taken instead. If there are few of both, all seeds are.
    """
    seeds, rejected = (
        pairs[~are_among(pairs, task.chosen)] for pairs in (task.seeds, task.rejected)
    )
    if len(seeds) >= max(FEWEST_SEEDS, min(ENOUGH, len(task.presumed))):
        return seeds, rejected
    if len(task.presumed) >= max(FEWEST_SEEDS, min(ENOUGH, len(seeds))):
        return task.presumed, rejected
    return task.seeds, task.rejected


def fits(task: Made[AlignmentTask], config: Config, before: int = 0) -> list[Fit]:
    """The fits of a run: one where seeds are plenty, otherwise as many as the setting says.

    With two (cross-fitting), each holds out seeds that the other one learns from. So every seed is
    learned from, and those that are held out show how often links are right. Rejected pairs are
    held out alike: a fit that links one of them is wrong. Answers to chosen questions are not held
    out, unless there is little else.

    A hash decides which are held out: those of the lowest hashes in the first fit, of the highest
    in the second. So unless their number rises, a pair that was learned from is not held out after
    seeds are added.

    Held-out pairs that were presumed from equal names are looked for without these names.

    Args:
        task: All seeds.
        config: All settings.
        before: How many each fit of the run before held out, for a warm restart.
    """
    matching = config.matching
    whole = task.value.in_order()
    pairs, rejected = _judges(whole)
    hides = pairs is whole.presumed
    seed = derived_seed(matching.seed, "held out")
    counts = num_held_out(whole, config, before)
    if not any(counts):
        return [Fit(Made.of(task.key, whole), whole.seeds[:0])]
    result = []
    own, of_rejected = (_hashes(some, whole, seed) for some in (pairs, rejected))
    for number, count in enumerate(counts):
        sign = -1 if number else 1  # the second fit goes from the highest hash downwards
        order = np.lexsort(sign * own[::-1])
        is_held = np.zeros(len(pairs), dtype=bool)
        is_held[order[:count]] = True
        # Rejected pairs up to the last hash of these; their number may be any.
        is_rejection_held = sign * of_rejected[0] <= sign * own[0][order[count - 1]]
        held, held_rejected = pairs[is_held], rejected[is_rejection_held]
        known = whole.without(held, held_rejected)
        key = recipe_key(
            "known", {"count": count, "seed": matching.seed, "fit": number}, {"task": task.key}
        )
        result.append(Fit(Made.of(key, known), held, number, hides, held_rejected))
    return result


def _hashes(pairs: IntArray, task: AlignmentTask, seed: int) -> NDArray[np.float64]:
    """(2, pairs): hashes in [-1, 1) of the source and of the target of each pair.

    The source comes first. Names decide which of two alike sources goes with which of two alike
    targets, and must not decide what is held out.
    """
    from torch import from_numpy

    from clusterea.numerics.ties import mixed

    both = task.tie_keys.zip(Pair(*pairs.T)).map(
        lambda side: mixed(from_numpy(side[0][side[1]]), seed).numpy() / 2.0**63
    )
    return np.stack([*both])


def lessons(fit: Fit, found: Made[Links], number: int, folds: int, seed: int) -> list[Lesson]:
    """The lessons of round `number`, one per fold: the seeds, and pseudo-seeds without one part.

    An encoder that trained on a wrong link finds it again. The fold without it can detect this.
    Without pseudo-seeds there is one lesson: the seeds.
    """
    known, seeds = fit.known, fit.known.value.seeds
    if not len(found.value):
        return [fit.first_lesson()]
    links = _still_possible(found.value.pairs.numpy(), known.value)
    draw = np.random.default_rng(derived_seed(seed, "folds"))
    part = draw.permutation(len(links)) % folds

    def lesson(fold: int) -> Lesson:
        is_taken = part != fold if folds > 1 else np.ones(len(links), dtype=bool)
        task = known.value.with_seeds(np.concatenate([seeds, links[is_taken]])).in_order()
        recipe = {"fold": fold, "folds": folds, "seed": seed}
        key = recipe_key("lesson", recipe, {"known": known.key, "pseudo": found.key})
        left_out = links[~is_taken, 0] if folds > 1 else None
        return Lesson(Made.of(key, task), number, fold, left_out, fit.number)

    return [lesson(fold) for fold in range(folds)]


def _still_possible(links: IntArray, task: AlignmentTask) -> IntArray:
    """The links that no seed and no decision contradicts."""
    without = replace(task, seeds=NO_LINKS, presumed=links, alone=NO_ENTITIES)
    return without.with_decisions(Decisions(task.seeds, task.rejected, task.alone)).presumed


def shares(encodings: Sequence[Encoding]) -> list[float]:
    """The weight of each encoding: equal for all encoders, whatever their number of folds."""
    encoders = [each.encoder for each in encodings]
    return [1 / len(set(encoders)) / encoders.count(encoder) for encoder in encoders]


def checking_shares(encodings: Sequence[Encoding], num_sources: int) -> Tensor:
    """(source entities, encodings): the weight of each encoding for each source entity.

    A source entity with a pseudo-seed is scored only by the folds that did not train on it.
    """
    from torch import from_numpy, tensor

    whole = shares(encodings)
    encoders = [each.encoder for each in encodings]
    result = tensor(whole).repeat(num_sources, 1)
    in_folds = [each.lesson.left_out for each in encodings if each.lesson.left_out is not None]
    pseudo = from_numpy(np.unique(np.concatenate([np.empty(0, np.int64), *in_folds])))
    for column, each in enumerate(encodings):
        if each.lesson.left_out is not None:
            result[pseudo, column] = 0.0
            result[from_numpy(each.lesson.left_out), column] = whole[column] * encoders.count(
                each.encoder
            )
    return result
