"""A small generated pair and quick settings, for whole runs in a second or two."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from clusterea.config import Config, preset
from clusterea.data.synthetic import SHAPES, generate
from clusterea.pipeline import AlignmentResult
from clusterea.types import AlignmentTask, Benchmark, Pair, StageCost

CPU = torch.device("cpu")
# What artifacts are named for.
STAGES = (
    *("names", "features", "translation", "trust"),  # where the data have names or features
    *("train", "sample", "metis", "fuse", "pseudo", "match"),
)


def benchmark(
    entities: tuple[int, int] = (300, 250), *, degree: int = 6, share: float = 0.3, seed: int = 0
) -> Benchmark:
    """Two views of one world, with a share of the links as seeds."""
    shape = replace(
        SHAPES["demo"],
        entities=Pair(*entities),
        triples=Pair(*entities).map(lambda count: degree * count),
        relations=Pair(12, 10),
    )
    whole = generate(shape, seed)
    links = whole.task.seeds
    known = int(len(links) * share)
    task = AlignmentTask(whole.task.graphs, links[:known], whole.task.tie_keys)
    return replace(whole, task=task, test_links=links[known:])


def quick(*settings: str, samplers: Sequence[str] = ("cmcs", "iscs"), seed: int = 0) -> Config:
    """The paper's pipeline, made small: one encoder, samplers and their mini-batches."""
    small = [
        "training.dimension=16",
        "training.epochs=3",
        "sampling.num_batches=3",
        "sampling.classifier=softmax",
        "sampling.gcn_epochs=15",
        "sampling.kmeans_starts=2",
        "fusion.candidates=10",
        "fusion.sinkhorn_rounds=20",
    ]
    return preset("paper", 300, samplers=samplers, seed=seed, settings=[*small, *settings])


def in_rounds(*settings: str, samplers: Sequence[str] | None = None, seed: int = 0) -> Config:
    """The default pipeline, made small: two encoders, two rounds beyond the first, held-out seeds.

    The threshold is low and no gain is too little, so that both rounds take place. One fit and one
    trained round, if the settings don't say otherwise.
    """
    small = [
        "training.dimension=16",
        "training.epochs=3",
        "propagation.dimension=32",
        "propagation.features=48",
        "sampling.num_batches=3",
        "fusion.candidates=10",
        "fusion.sinkhorn_rounds=20",
        "self_training.rounds=2",
        "self_training.threshold=0.1",
        "self_training.epochs=0",
        "self_training.least_gain=0",
        "self_training.few=1",
        "self_training.trained_rounds=1",
        "matching.held_out=0.5",
        "matching.fits=1",
    ]
    return preset("default", 300, samplers=samplers, seed=seed, settings=[*small, *settings])


def artifacts(run: Path, stage: str) -> list[Path]:
    """The folders of one stage's artifacts."""
    return [place for place in run.glob(f"{stage}-*") if place.is_dir()]


def digests(run: Path) -> dict[str, str]:
    """Every stage's artifacts, by name: a hash of what is in them."""
    return {
        f"{place.name}/{file.name}": hashlib.sha256(file.read_bytes()).hexdigest()
        for stage in STAGES
        for place in artifacts(run, stage)
        for file in place.iterdir()
    }


def made(run: Path) -> dict[str, int]:
    """How many artifacts of each stage there are."""
    return {stage: len(artifacts(run, stage)) for stage in STAGES}


def is_clean(run: Path) -> bool:
    """Whether nothing half-made is left."""
    return not [*run.glob(".*"), *run.glob("*/.*")]


@dataclass
class Ear:
    """An observer that writes down what it hears, and may interrupt."""

    stop_at: str = ""  # the stage at which it interrupts
    stop_when: str = ""  # what that stage then says it is doing; empty: where it begins
    begun: list[str] = field(default_factory=list)
    ended: list[StageCost] = field(default_factory=list)
    steps: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict)
    warned: list[str] = field(default_factory=list)

    def begin(self, stage: str) -> None:
        assert len(self.begun) == len(self.ended)  # the stage before is over
        if stage == self.stop_at and not self.stop_when:
            raise KeyboardInterrupt
        self.begun.append(stage)

    def step(self, stage: str, what: str, done: int, total: int) -> None:
        assert stage in self.begun  # what was damaged is made again when somebody needs it
        if stage == self.stop_at and self.stop_when and what.startswith(self.stop_when):
            raise KeyboardInterrupt
        self.steps.setdefault(stage, []).append((what, done, total))

    def end(self, cost: StageCost) -> None:
        assert cost.stage == self.begun[-1]
        self.ended.append(cost)

    def warn(self, message: str) -> None:
        self.warned.append(message)


def stages(result: AlignmentResult) -> list[str]:
    """What took place, in order."""
    return [cost.stage for cost in result.timings]


def reused(result: AlignmentResult) -> list[str]:
    """The stages whose results were there already."""
    return [cost.stage for cost in result.timings if cost.reused]


def assert_same(one: AlignmentResult, other: AlignmentResult) -> None:
    """Bit for bit, under the same keys."""
    assert one.keys == other.keys
    assert [each.num_new for each in one.rounds] == [each.num_new for each in other.rounds]
    made = [
        [
            *each.made_embeddings.values(),
            *each.made_partitions.values(),
            *(round_.found for round_ in each.rounds),
            each.made_similarity,
            each.made_alignment,
        ]
        for each in (one, other)
    ]
    for mine, yours in zip(*made, strict=True):
        assert (mine is None) == (yours is None)
        if mine is not None and yours is not None:
            mine_, yours_ = mine.value.tensors(), yours.value.tensors()
            assert list(mine_) == list(yours_)
            for name, tensor in mine_.items():
                assert torch.equal(tensor, yours_[name])
