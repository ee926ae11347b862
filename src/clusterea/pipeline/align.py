"""`align`: the paper's figure 2, one stage after the other, in rounds if it trains itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from clusterea.config import Config, PropagationConfig, TrainingConfig
from clusterea.pipeline.artifacts import Artifacts
from clusterea.pipeline.cuts import Cuts
from clusterea.pipeline.encoding import (
    Encoding,
    Known,
    checking_shares,
    folds,
    held_out_stage,
    shares_of,
)
from clusterea.pipeline.measure import StageCost, measured
from clusterea.pipeline.result import AlignmentResult, Round
from clusterea.pipeline.stages import (
    Trial,
    encoder_name,
    fuse_stage,
    match_stage,
    point_at_encoders,
    pseudo_seed_stage,
    sample_stage,
    train_stage,
)
from clusterea.types import AlignmentTask, Partition, Similarity
from clusterea.workspace import Workspace, task_key

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from clusterea.training import Progress

Value = TypeVar("Value")


class Observer(Protocol):
    """Who is told how far things are, and what was damaged and is made again."""

    def begin(self, stage: str) -> None: ...
    def step(self, stage: str, what: str, done: int, total: int) -> None: ...
    def end(self, cost: StageCost) -> None: ...
    def warn(self, message: str) -> None: ...


class Silent:
    """Nobody."""

    def begin(self, stage: str) -> None: ...
    def step(self, stage: str, what: str, done: int, total: int) -> None: ...
    def end(self, cost: StageCost) -> None: ...
    def warn(self, message: str) -> None: ...


class PythonWarnings(Silent):
    """Passes on warnings alone, through Python's `warnings`: what is used without an observer."""

    def warn(self, message: str) -> None:
        warnings.warn(message, stacklevel=2)


def align(
    task: AlignmentTask,
    config: Config,
    device: torch.device,
    *,
    workspace: Workspace | None = None,
    observer: Observer | None = None,
) -> AlignmentResult:
    """Encodes, samples, fuses and matches. With a workspace, only what it lacks is computed."""
    check_names(config)  # before any work is done
    watcher = observer or PythonWarnings()
    run = _Run(config, device, Artifacts(workspace, watcher.warn), watcher)
    of_task = task_key(task)
    held_key, held, free = held_out_stage(run.artifacts, of_task, task, config.matching)
    known = Known(free, {"task": of_task} | ({"held": held_key} if held_key else {}))
    rejoining = held if config.matching.rejoin else None
    whole = known
    if rejoining is not None:
        whole = Known(task, {"task": of_task, "rejoined": held_key})
    trial = None if held is None else Trial(held)
    rounds: list[Round] = []
    with Cuts(run.artifacts, of_task, task) as cuts:
        cuts.begin(config.samplers, config.sampling.num_batches, config.sampling.seed)
        first = encodings = run.encode([known], range(len(config.models)))
        similarity = run.similarity(known, encodings, cuts)
        while len(rounds) < config.self_training.rounds:
            run.suffix = f", round {len(rounds) + 1}"
            key, found = run.pseudo_seeds(known, similarity, held)
            rounds.append(Round(found, _num_new(found, rounds)))
            if not len(found):
                break
            gained = rounds[-1].num_new >= config.self_training.least_gain * len(found)
            is_last = len(rounds) == config.self_training.rounds or not gained
            again = run.renewed(is_last=is_last)
            if is_last and rejoining is not None:
                trial = run.rehearsed(rejoining, similarity)
            base = whole if is_last else known
            learned, part_of = folds(base, key, found, config.self_training)
            renewed = run.encode(learned, again, config.self_training.epochs)
            kept = [each for each in first if each.place not in set(again)]
            encodings = sorted([*kept, *renewed], key=lambda each: each.place)
            checks = len(learned) > 1 and config.self_training.check and not is_last
            similarity = run.similarity(
                learned[0], encodings, cuts, base.task, part_of if checks else None
            )
            if is_last:
                break
        if rejoining is not None and not (trial and trial.key):
            trial = run.rehearsed(rejoining, similarity)
            run.suffix = ", all seeds"
            encodings = run.encode([whole], range(len(config.models)))
            similarity = run.similarity(whole, encodings, cuts)
    run.suffix = ""
    match_key, alignment = run.timed(
        "matching",
        lambda: match_stage(
            run.artifacts,
            run.keys["fuse"],
            task,
            lambda: similarity,
            config.matching,
            device,
            trial,
        ),
    )
    return AlignmentResult(
        task,
        config,
        tuple(each.embeddings for each in encodings),
        run.partitions,
        similarity,
        alignment,
        tuple(run.costs),
        tuple(rounds),
        {**run.keys, "match": match_key},
    )


def check_names(config: Config) -> None:
    """Raises where a model, a sampler or a view is unknown."""
    from clusterea.fusion import find_view
    from clusterea.models import check_model
    from clusterea.samplers import find_sampler

    for model in config.models:
        check_model(model)
    for sampler in config.samplers:
        find_sampler(sampler)
    for view in config.fusion.views:
        find_view(view)


class _Run:
    """The stages of one `align`, timed; the keys of what they made last."""

    def __init__(
        self, config: Config, device: torch.device, artifacts: Artifacts, watcher: Observer
    ) -> None:
        self._config = config
        self._device = device
        self._watcher = watcher
        self.artifacts = artifacts
        self.costs: list[StageCost] = []
        self.keys: dict[str, str] = {}
        self.partitions: dict[str, Partition] = {}
        self.suffix = ""  # of stages' names

    def timed(self, stage: str, run: Callable[[], tuple[str, Value]]) -> tuple[str, Value]:
        """Runs a stage and notes what it costs."""
        stage += self.suffix
        self._watcher.begin(stage)
        with measured(stage, self._device) as cost:
            key, value = run()
        cost.reused = key not in self.artifacts.made
        self.costs.append(cost)
        self._watcher.end(cost)
        return key, value

    def cheap(self) -> Sequence[int]:
        """The places of the encoders that need no training."""
        encoders = enumerate(self._config.encoders())
        return [place for place, each in encoders if isinstance(each, PropagationConfig)]

    def renewed(self, *, is_last: bool) -> Sequence[int]:
        """The places of the encoders that a round runs anew.

        Training is dear and propagation cheap: what is trained may wait for the last round.
        """
        cheap = self.cheap()
        if cheap and not is_last and self._config.self_training.retrain == "last":
            return cheap
        return range(len(self._config.models))

    def encode(
        self, learned: Sequence[Known], places: Iterable[int], epochs: int = 0
    ) -> list[Encoding]:
        """The encoders at these places, each once for everything it may learn from.

        `epochs` are those of training; 0: as many as the config says.
        """
        encoders = list(self._config.encoders())
        if epochs:
            encoders = [
                replace(each, epochs=epochs) if isinstance(each, TrainingConfig) else each
                for each in encoders
            ]
        found = []
        for place in places:
            what = "propagation" if place in self.cheap() else "training"
            for fold, known in enumerate(learned):
                config = replace(encoders[place], seed=encoders[place].seed + fold)
                key, embeddings = self.timed(
                    what,
                    partial(
                        train_stage,
                        self.artifacts,
                        known,
                        config,
                        self._device,
                        partial(self._step, what + self.suffix),
                    ),
                )
                left_out = fold if len(learned) > 1 else None
                found.append(Encoding(place, key, embeddings, left_out))
        return found

    def _step(self, stage: str, at: Progress) -> None:
        what = f"epoch {at.epoch} of {at.epochs}" if at.epochs > 1 else "labels"
        self._watcher.step(stage, what, (at.epoch - 1) * at.steps + at.step, at.epochs * at.steps)

    def similarity(
        self,
        known: Known,
        encodings: Sequence[Encoding],
        cuts: Cuts,
        seeds: AlignmentTask | None = None,
        part_of: Tensor | None = None,
    ) -> Similarity:
        """What these encoders say of all entities but those of the seeds.

        With `part_of`, from `folds`, pseudo-seeds are judged by who has not learned them.
        """
        first = encodings[0]
        keys = {encoder_name(place): each.key for place, each in enumerate(encodings)}
        point_at_encoders(self.artifacts, list(keys.values()))
        for sampler in self._config.samplers:
            keys[sampler], self.partitions[sampler] = self.timed(
                f"sampling: {sampler}",
                partial(
                    sample_stage,
                    self.artifacts,
                    first.key,
                    known,
                    lambda: first.embeddings,
                    sampler,
                    self._config.sampling,
                    self._device,
                    cuts,
                ),
            )
        key, similarity = self.timed(
            "fusion",
            lambda: fuse_stage(
                self.artifacts,
                keys,
                seeds or known.task,
                lambda: [each.embeddings for each in encodings],
                self.partitions,
                self._config.fusion,
                self._device,
                partial(self._watcher.step, "fusion" + self.suffix),
                shares_of(encodings),
                None if part_of is None else checking_shares(encodings, part_of),
            ),
        )
        self.keys = {**keys, "fuse": key}
        return similarity

    def rehearsed(self, held: Tensor, similarity: Similarity) -> Trial:
        """The trial of a similarity whose encoders have not learned the held-out seeds."""
        key = self.keys["fuse"]
        if self.artifacts.workspace is not None:
            self.artifacts.workspace.point("rehearsal", key)
        return Trial(held, key, lambda: similarity)

    def pseudo_seeds(
        self, known: Known, similarity: Similarity, held: Tensor | None
    ) -> tuple[str, Tensor]:
        """The matches that the next round learns from."""
        return self.timed(
            "self-training",
            lambda: pseudo_seed_stage(
                self.artifacts,
                self.keys["fuse"],
                known.task,
                lambda: similarity,
                self._config.self_training,
                self._device,
                held,
            ),
        )


def _num_new(found: Tensor, rounds: Sequence[Round]) -> int:
    """How many of these links the round before did not have."""
    if not rounds:
        return len(found)
    before = set(map(tuple, rounds[-1].pseudo_seeds.tolist()))
    return sum(tuple(link) not in before for link in found.tolist())
