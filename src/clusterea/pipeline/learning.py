"""The pairs that encoders learn from: seeds that are not held out, and later pseudo-seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clusterea.config import MatchingConfig, SelfTrainingConfig
from clusterea.pipeline.store import Made
from clusterea.seeding import derived_seed
from clusterea.types import AlignmentTask, Embeddings, IntArray, Links
from clusterea.workspace import recipe_key

if TYPE_CHECKING:
    from torch import Tensor

FEWEST_HELD_OUT = 50  # fewer are too few to fit the confidence
MOST_HELD_OUT = 0.1  # share of the seeds, if the setting asks for less


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """The pairs that an encoder learns from: the seeds of a task."""

    task: Made[AlignmentTask]
    round: int = 0  # of self-training; 0: the first pass
    fold: int = 0
    left_out: IntArray | None = None  # sources of the fold's unused pseudo-seeds; None: no folds


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """The embeddings of one encoder for one lesson."""

    encoder: int  # its index in the config
    lesson: Lesson
    embeddings: Made[Embeddings]


def num_held_out(num_seeds: int, share: float) -> int:
    """The number of held-out seeds; 0 if the needed number is too large a share."""
    if not share:
        return 0
    count = max(int(share * num_seeds), FEWEST_HELD_OUT)
    return count if count <= max(share, MOST_HELD_OUT) * num_seeds else 0


def held_out(task: AlignmentTask, config: MatchingConfig) -> tuple[IntArray, AlignmentTask]:
    """(n, 2): the held-out seeds, and the task without them."""
    task = task.in_order()
    count = num_held_out(task.num_seeds, config.held_out)
    draw = np.random.default_rng(derived_seed(config.seed, "held out"))
    is_held = np.zeros(task.num_seeds, dtype=bool)
    is_held[draw.permutation(task.num_seeds)[:count]] = True
    return task.seeds[is_held], task.with_seeds(task.seeds[~is_held])


def lessons(
    known: Made[AlignmentTask], found: Made[Links], config: SelfTrainingConfig, number: int
) -> list[Lesson]:
    """The lessons of round `number`, one per fold: the seeds, and pseudo-seeds without one part.

    An encoder that trained on a wrong link finds it again. The fold without it can detect this.
    """
    seeds = known.value.seeds
    links = found.value.pairs.numpy()
    is_new = ~np.isin(links[:, 0], seeds[:, 0]) & ~np.isin(links[:, 1], seeds[:, 1])
    links = links[is_new]
    draw = np.random.default_rng(derived_seed(config.seed, "folds"))
    part = draw.permutation(len(links)) % config.folds

    def lesson(fold: int) -> Lesson:
        is_taken = part != fold if config.folds > 1 else np.ones(len(links), dtype=bool)
        task = known.value.with_seeds(np.concatenate([seeds, links[is_taken]])).in_order()
        recipe = {"fold": fold, "folds": config.folds, "seed": config.seed}
        key = recipe_key("lesson", recipe, {"known": known.key, "pseudo": found.key})
        left_out = links[~is_taken, 0] if config.folds > 1 else None
        return Lesson(Made.of(key, task), number, fold, left_out)

    return [lesson(fold) for fold in range(config.folds)]


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
