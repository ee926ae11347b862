"""What encoders learn from: seeds, some of them held out, and in later rounds pseudo-seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from clusterea.config import MatchingConfig, SelfTrainingConfig
from clusterea.pipeline.artifacts import Artifacts, entity_counts, pack_links, unpack_links
from clusterea.types import AlignmentTask, IntArray, Pair

if TYPE_CHECKING:
    from torch import Tensor

FEWEST_HELD = 50  # seeds that tell something about how sure links are
MOST_HELD = 0.1  # of the seeds, where the share asked for is less than the fewest


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A task to learn from, its seeds sorted by key, and the cache keys it came from."""

    task: AlignmentTask
    parents: Mapping[str, str]
    fold: str = ""  # which pseudo-seeds are left out, if any

    def __post_init__(self) -> None:
        object.__setattr__(self, "task", self.task.in_order())

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
    fold: int | None = None  # the part of the pseudo-seeds that it has not learned, if any


def shares_of(encodings: Sequence[Encoding]) -> list[float] | None:
    """What each weighs: every encoder the same, however often it was run. None if that is all."""
    places = [each.place for each in encodings]
    shares = [1 / len(set(places)) / places.count(place) for place in places]
    return shares if len(set(shares)) > 1 else None


def checking_shares(encodings: Sequence[Encoding], part_of: Tensor) -> Tensor:
    """(source entities, encoders): what each encoder weighs where none may judge what it learned.

    Args:
        encodings: Each encoder once, or once for each fold.
        part_of: (source entities,): the fold that left out the entity's pseudo-seed; -1 without.
    """
    from torch import tensor

    whole = shares_of(encodings) or [1 / len(encodings)] * len(encodings)
    shares = tensor(whole).repeat(len(part_of), 1)
    places = [each.place for each in encodings]
    for at, each in enumerate(encodings):
        if each.fold is not None:
            is_in = part_of >= 0
            knows = part_of != each.fold
            shares[is_in & knows, at] = 0.0
            shares[is_in & ~knows, at] = whole[at] * places.count(each.place)
    return shares


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
    task = task.in_order()
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
        partial(unpack_links, sizes=entity_counts(task)),
    )
    if artifacts.workspace is not None:
        artifacts.workspace.point("held", key)
    return key, held, task.with_seeds(task.seeds[~is_held])


def beyond(links: IntArray, seeds: IntArray) -> IntArray:
    """The links that have no entity of a seed."""
    ends = (np.isin(links[:, side], seeds[:, side]) for side in (0, 1))
    return links[~np.logical_or(*ends)]


def without_seeds(task: AlignmentTask, held: Tensor) -> AlignmentTask:
    """The task without the seeds that were held out."""
    return task.with_seeds(task.seeds[~np.isin(task.seeds[:, 0], held[:, 0].numpy())])


def folds(
    known: Known, pseudo_key: str, pseudo_seeds: Tensor, config: SelfTrainingConfig
) -> tuple[list[Known], Tensor]:
    """The seeds with the pseudo-seeds; for several folds, each time without one part of these.

    An encoder that has learned a wrong link finds it again. One that has not is the other's check.

    Returns:
        What is known in each fold, and (source entities,) the fold that is without the entity's
        pseudo-seed, or -1.
    """
    from torch import from_numpy, full

    from clusterea.seeding import derived_seed

    links = beyond(pseudo_seeds.numpy(), known.task.seeds)
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
    part_of = full((known.task.graphs.source.num_entities,), -1)
    if fold_of is not None:
        part_of[from_numpy(links[:, 0])] = from_numpy(fold_of)
    return found, part_of
