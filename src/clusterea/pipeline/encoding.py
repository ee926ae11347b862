"""What encoders learn from: seeds, some of them held out, and in later rounds pseudo-seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clusterea.config import MatchingConfig, SelfTrainingConfig
from clusterea.pipeline.artifacts import Artifacts, pack_links, unpack_links
from clusterea.types import AlignmentTask, Pair

if TYPE_CHECKING:
    from torch import Tensor

FEWEST_HELD = 50  # seeds that tell something about how sure links are
MOST_HELD = 0.1  # of the seeds, where the share asked for is less than the fewest


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A task to learn from, and how artifacts of it are told from others'."""

    task: AlignmentTask
    parents: Mapping[str, str]
    fold: str = ""  # which pseudo-seeds are left out, if any

    def recipe(self) -> dict[str, str]:
        """What the recipe of something learned from it says of it."""
        return {"fold": self.fold} if self.fold else {}

    def learned(self) -> dict[str, str]:
        """The parents beside the task: what was taken from its seeds or added to them."""
        return {name: key for name, key in self.parents.items() if name != "task"}


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """What one encoder made."""

    place: int  # of the encoder among those of the config
    key: str
    embeddings: Pair[Tensor]


def shares_of(encodings: Sequence[Encoding]) -> list[float] | None:
    """What each weighs: every encoder the same, however often it was run. None if that is all."""
    places = [each.place for each in encodings]
    shares = [1 / len(set(places)) / places.count(place) for place in places]
    return shares if len(set(shares)) > 1 else None


def num_held_out(num_seeds: int, share: float) -> int:
    """How many seeds are held out: a few tell nothing, and where seeds are few each one counts."""
    if not share:
        return 0
    count = max(int(share * num_seeds), FEWEST_HELD)
    return count if count <= max(share, MOST_HELD) * num_seeds else 0


def held_out_stage(
    artifacts: Artifacts, task_key: str, task: AlignmentTask, config: MatchingConfig
) -> tuple[str, Tensor | None, AlignmentTask]:
    """The seeds that only the confidence is fitted on, their key, and the task without them."""
    from torch import from_numpy

    from clusterea.seeding import derived_seed

    count = num_held_out(task.num_seeds, config.held_out)
    if not count:
        return "", None, task
    draw = np.random.default_rng(derived_seed(config.seed, "held out"))
    is_held = np.zeros(task.num_seeds, dtype=bool)
    is_held[draw.permutation(task.num_seeds)[:count]] = True
    held = from_numpy(task.seeds[is_held])
    key, _ = artifacts.tensors(
        "held",
        {"share": config.held_out, "seed": config.seed},
        {"task": task_key},
        lambda: held,
        pack_links,
        unpack_links,
    )
    if artifacts.workspace is not None:
        artifacts.workspace.point("held", key)
    return key, held, task.with_seeds(task.seeds[~is_held])


def without_seeds(task: AlignmentTask, held: Tensor) -> AlignmentTask:
    """The task without the seeds that were held out."""
    return task.with_seeds(task.seeds[~np.isin(task.seeds[:, 0], held[:, 0].numpy())])


def folds(
    known: Known, pseudo_key: str, pseudo_seeds: Tensor, config: SelfTrainingConfig
) -> list[Known]:
    """The seeds with the pseudo-seeds; for several folds, each time without one part of these.

    An encoder that has learned a wrong link finds it again. One that has not is the other's check.
    """
    from clusterea.seeding import derived_seed

    links = pseudo_seeds.numpy()
    draw = np.random.default_rng(derived_seed(config.seed, "folds"))
    fold_of = draw.permutation(len(links)) % config.folds if config.folds > 1 else None
    found = []
    for fold in range(config.folds):
        taken = links if fold_of is None else links[fold_of != fold]
        found.append(
            Known(
                known.task.with_seeds(np.concatenate([known.task.seeds, taken])),
                {**known.parents, "pseudo": pseudo_key},
                f"{fold + 1} of {config.folds}" if config.folds > 1 else "",
            )
        )
    return found
