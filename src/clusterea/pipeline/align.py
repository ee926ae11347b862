"""`align`: the paper's figure 2, one stage after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from clusterea.config import Config
from clusterea.pipeline.artifacts import Artifacts
from clusterea.pipeline.cuts import Cuts
from clusterea.pipeline.measure import StageCost, measured
from clusterea.pipeline.stages import fuse_stage, match_stage, sample_stage, train_stage
from clusterea.types import Alignment, AlignmentTask, IntArray, Metrics, Pair, Partition, Similarity
from clusterea.workspace import Workspace, task_key

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from clusterea.training import Progress

Value = TypeVar("Value")


class Observer(Protocol):
    """Who is told how far things are."""

    def begin(self, stage: str) -> None: ...
    def step(self, stage: str, what: str, done: int, total: int) -> None: ...
    def end(self, cost: StageCost) -> None: ...


class Silent:
    """Nobody."""

    def begin(self, stage: str) -> None: ...
    def step(self, stage: str, what: str, done: int, total: int) -> None: ...
    def end(self, cost: StageCost) -> None: ...


@dataclass(frozen=True, slots=True, eq=False)
class AlignmentResult:
    """What `align` found, and what it cost."""

    task: AlignmentTask
    config: Config
    embeddings: Pair[Tensor]
    partitions: Mapping[str, Partition]  # by sampler
    similarity: Similarity
    alignment: Alignment
    timings: tuple[StageCost, ...]
    keys: Mapping[str, str] = field(default_factory=dict)  # stage → artifact

    def evaluate(self, test_links: IntArray | Tensor) -> Metrics:
        """Hits, MRR, precision and recall, judged by links that no stage has seen."""
        from clusterea.evaluation import evaluate

        return evaluate(
            self.similarity,
            test_links,
            self.task.seeds,
            degrees=self.task.graphs.source.degrees(),
            alignment=self.alignment,
        )


def align(
    task: AlignmentTask,
    config: Config,
    device: torch.device,
    *,
    workspace: Workspace | None = None,
    observer: Observer | None = None,
) -> AlignmentResult:
    """Trains, samples, fuses and matches. With a workspace, only what it lacks is computed."""
    from clusterea.samplers import find_sampler

    for sampler in config.samplers:  # an unknown one is refused before any work is done
        find_sampler(sampler)
    watcher = observer or Silent()
    artifacts = Artifacts(workspace)
    costs: list[StageCost] = []

    def timed(stage: str, run: Callable[[], tuple[str, Value]]) -> tuple[str, Value]:
        watcher.begin(stage)
        with measured(stage, device) as cost:
            key, value = run()
        cost.reused = key not in artifacts.made
        costs.append(cost)
        watcher.end(cost)
        return key, value

    def trained(at: Progress) -> None:
        done = (at.epoch - 1) * at.steps + at.step
        watcher.step("training", f"epoch {at.epoch} of {at.epochs}", done, at.epochs * at.steps)

    def fused(what: str, done: int, total: int) -> None:
        watcher.step("fusion", what, done, total)

    of_task = task_key(task)
    with Cuts(artifacts, of_task, task) as cuts:
        cuts.begin(config.samplers, config.sampling.num_batches, config.sampling.seed)
        train_key, embeddings = timed(
            "training",
            lambda: train_stage(artifacts, of_task, task, config.training, device, trained),
        )
        keys = {"train": train_key}
        partitions: dict[str, Partition] = {}
        for sampler in config.samplers:
            keys[sampler], partitions[sampler] = timed(
                f"sampling: {sampler}",
                partial(
                    sample_stage,
                    artifacts,
                    train_key,
                    task,
                    lambda: embeddings,
                    sampler,
                    config.sampling,
                    device,
                    cuts,
                ),
            )
    fuse_key, similarity = timed(
        "fusion",
        lambda: fuse_stage(
            artifacts, keys, task, lambda: embeddings, partitions, config.fusion, device, fused
        ),
    )
    match_key, alignment = timed(
        "matching",
        lambda: match_stage(artifacts, fuse_key, task, lambda: similarity, config.matching, device),
    )
    return AlignmentResult(
        task,
        config,
        embeddings,
        partitions,
        similarity,
        alignment,
        tuple(costs),
        {**keys, "fuse": fuse_key, "match": match_key},
    )
