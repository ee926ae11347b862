"""The pairs that encoders learn from: seeds that are not held out, and later pseudo-seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clusterea.config import Config
from clusterea.pipeline.store import Made
from clusterea.seeding import derived_seed
from clusterea.types import AlignmentTask, Embeddings, IntArray, Links
from clusterea.workspace import recipe_key

if TYPE_CHECKING:
    from torch import Tensor

FEWEST_SEEDS = 50  # with fewer, none are held out
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


def num_held_out(task: AlignmentTask, config: Config) -> list[int]:
    """The number of held-out seeds of each fit; a single 0 if none are held out."""
    share, seeds = config.matching.held_out, task.num_seeds
    if not share or seeds < FEWEST_SEEDS:
        return [0]
    asked = int(share * seeds)
    alone = max(asked, ENOUGH)
    is_few = config.self_training.are_few(seeds, task.num_entities)
    if not is_few and alone <= max(share, MOST_HELD_OUT) * seeds:
        return [alone]
    return [min(max(asked, ENOUGH // 2), seeds // 2)] * config.matching.fits


def fits(task: Made[AlignmentTask], config: Config) -> list[Fit]:
    """The fits of a run: one where seeds are plenty, otherwise as many as the setting says.

    With two (cross-fitting), each holds out seeds that the other one learns from. So every seed is
    learned from, and those that are held out show how often links are right.
    """
    matching = config.matching
    whole = task.value.in_order()
    draw = np.random.default_rng(derived_seed(matching.seed, "held out"))
    order = draw.permutation(whole.num_seeds)
    result = []
    for number, count in enumerate(num_held_out(whole, config)):
        if not count:
            return [Fit(Made.of(task.key, whole), whole.seeds[:0])]
        is_held = np.zeros(whole.num_seeds, dtype=bool)
        is_held[order[number * count : (number + 1) * count]] = True
        recipe = {
            "held_out": matching.held_out,
            "count": count,
            "seed": matching.seed,
            "fit": number,
        }
        known = Made.of(
            recipe_key("known", recipe, {"task": task.key}),
            whole.with_seeds(whole.seeds[~is_held]),
        )
        result.append(Fit(known, whole.seeds[is_held], number))
    return result


def lessons(fit: Fit, found: Made[Links], number: int, folds: int, seed: int) -> list[Lesson]:
    """The lessons of round `number`, one per fold: the seeds, and pseudo-seeds without one part.

    An encoder that trained on a wrong link finds it again. The fold without it can detect this.
    Without pseudo-seeds there is one lesson: the seeds.
    """
    known, seeds = fit.known, fit.known.value.seeds
    if not len(found.value):
        return [Lesson(known, fit=fit.number)]
    links = found.value.pairs.numpy()
    is_new = ~np.isin(links[:, 0], seeds[:, 0]) & ~np.isin(links[:, 1], seeds[:, 1])
    links = links[is_new]
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
