"""A small generated pair and quick settings, for whole runs in a second or two."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from clusterea.config import Config, preset
from clusterea.data.synthetic import SHAPES, generate
from clusterea.types import AlignmentTask, Benchmark, Pair

CPU = torch.device("cpu")
# What artifacts are named for.
STAGES = ("held", "train", "sample", "metis", "fuse", "pseudo", "match")


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

    Seeds are held out where there are at least a hundred. The threshold is low and no gain is too
    little, so that both rounds take place.
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
        "matching.held_out=0.5",
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
