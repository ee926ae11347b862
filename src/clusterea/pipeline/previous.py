"""`Previous`: what a run takes over from the run before it, which had fewer answers.

A few answers change little of what encoders learn. So a warm restart takes over the trained
embeddings and the pseudo-seeds of the last round, and runs label propagation, fusion and matching
again. Where nothing is trained, that saves no time, but the pseudo-seeds of all runs together are
better than those of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from clusterea.config import Config
from clusterea.errors import DataError
from clusterea.pipeline.learning import Fit, fits
from clusterea.pipeline.rounds import Rounds
from clusterea.pipeline.store import Made
from clusterea.types import AlignmentTask, IntArray
from clusterea.workspace import Manifest, Workspace, task_key

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Previous:
    """The artifacts that are taken over, for each fit."""

    pseudo: tuple[str | None, ...]  # the pseudo-seeds of the last round; None: there was no round
    trained: tuple[tuple[tuple[int, str], ...], ...]  # the encoder's number, and its embeddings
    held: int = 0  # how many seeds each fit held out

    @property
    def keys(self) -> list[str]:
        """The keys of all artifacts."""
        found = [key for some in self.trained for _, key in some]
        return [*filter(None, self.pseudo), *found]

    def to_dict(self) -> dict[str, Any]:
        return {
            "pseudo": list(self.pseudo),
            "trained": [[list(each) for each in some] for some in self.trained],
            "held": self.held,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Previous:
        return cls(
            tuple(values["pseudo"]),
            tuple(tuple((int(e), str(k)) for e, k in some) for some in values["trained"]),
            int(values.get("held", 0)),
        )


def find_previous(
    workspace: Workspace, task: AlignmentTask, config: Config, device: torch.device
) -> Previous | None:
    """What a run of this task can take over from the last finished run in the folder.

    None: the run must do everything itself. That is so if the settings have changed, if nothing was
    learned but from seeds, if an artifact is missing or damaged, or if most of what is learned from
    is new. It is also so if a seed that the run before learned from is no seed any more, or if it
    would be held out now, which would make the confidence too high.

    If the run before was of the same task, this is what that run took over, so that its results are
    found again.
    """
    try:
        manifest = Manifest.read(workspace.folder).reaching("match")
        resolved = replace(config, fusion=config.fusion.on(device.type, task.num_undecided))
        if manifest.config.to_dict() != resolved.to_dict():
            return None
        values = manifest.values
        is_same = values["data"]["decided"] == task_key(task)
        taken = values["taken_over" if is_same else "leaves"]
        previous = None if taken is None else Previous.from_dict(taken)
        if previous is None or not _has_more_than_seeds(previous, Rounds.of(task, config)):
            return None
        for key in previous.keys:
            workspace.load_tensors(key)  # raises if it is missing or damaged
        if is_same:
            return previous
        before = workspace.load_benchmark(manifest.data).task
    except (DataError, FileNotFoundError, KeyError):  # of an earlier version, or damaged
        return None
    taken_before = values["taken_over"]
    held = 0 if taken_before is None else Previous.from_dict(taken_before).held
    old = fits(Made.of("", before), config, held)
    new = fits(Made.of("", task), config, previous.held)
    return previous if _is_fair(old, new) and _are_mostly_known(old, new) else None


def _has_more_than_seeds(previous: Previous, rounds: Rounds) -> bool:
    """Whether something was trained, or each fit has pseudo-seeds that rounds can go on from."""
    return any(previous.trained) or (rounds.goes_on and all(previous.pseudo))


def _are_mostly_known(before: Sequence[Fit], now: Sequence[Fit]) -> bool:
    """Whether each fit had at least half of the pairs that it learns from.

    What was learned from fewer is poor, and its mistakes would stay.
    """
    return all(
        2 * len(old.known.value.all_seeds) >= len(new.known.value.all_seeds)
        for old, new in zip(before, now, strict=True)
    )


def _is_fair(before: Sequence[Fit], now: Sequence[Fit]) -> bool:
    """Whether the seeds of each fit are still seeds, and it holds out nothing that it learned."""
    if len(before) != len(now) or before[0].hides != now[0].hides:
        return False
    for old, new in zip(before, now, strict=True):
        known = old.known.value
        learned = _pairs(known.all_seeds, known.rejected)
        if learned & _pairs(new.held, new.held_rejected):
            return False
        if not _pairs(known.seeds) <= _pairs(new.known.value.seeds):
            return False
    return True


def _pairs(*some: IntArray) -> set[tuple[int, ...]]:
    return {*map(tuple, np.concatenate(some).tolist())}
