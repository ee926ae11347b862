"""What a run on the demo pair could have ended with, without running anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch

from clusterea.data.synthetic import SHAPES, generate
from clusterea.report import ReportData, collect
from clusterea.types import (
    Alignment,
    AlignmentTask,
    Benchmark,
    Names,
    Pair,
    Partition,
    StageCost,
    Texts,
)

METRICS = {
    "test_candidates": {
        "source_to_target": {"hits@1": 0.731, "hits@10": 0.902, "mrr": 0.795},
        "target_to_source": {"hits@1": 0.724, "hits@10": 0.895, "mrr": 0.788},
    },
    "all_candidates": {
        "source_to_target": {"hits@1": 0.688, "hits@10": 0.874, "mrr": 0.757},
        "target_to_source": {"hits@1": 0.679, "hits@10": 0.869, "mrr": 0.749},
    },
    "matching": {"precision": 0.775, "recall": 0.775, "f1": 0.775},
    "by_degree": [
        {"least": 1, "most": 1, "test_links": 64, "hits@1": 0.31, "hits@10": 0.58, "mrr": 0.41},
        {"least": 2, "most": 2, "test_links": 143, "hits@1": 0.48, "hits@10": 0.74, "mrr": 0.57},
        {"least": 3, "most": 4, "test_links": 497, "hits@1": 0.66, "hits@10": 0.87, "mrr": 0.74},
        {"least": 5, "most": 8, "test_links": 611, "hits@1": 0.79, "hits@10": 0.95, "mrr": 0.85},
        {"least": 9, "most": 16, "test_links": 371, "hits@1": 0.9, "hits@10": 0.99, "mrr": 0.93},
        {"least": 17, "most": 240, "test_links": 99, "hits@1": 0.97, "hits@10": 1.0, "mrr": 0.98},
    ],
    "missing": 31,
    "test_links": 1785,
}
STAGES = (
    StageCost("load", 0.4, 410 * 2**20),
    StageCost("train", 83.2, 1900 * 2**20, 3 * 2**30),
    StageCost("sample", 12.9, 1200 * 2**20, 2**30),
    StageCost("fuse", 31.0, 2600 * 2**20, 5 * 2**30),
    StageCost("match", 2.2, 900 * 2**20),
    StageCost("evaluate", 1.1, 850 * 2**20),
)
CONFIG = {
    "training": {"model": "dual-amn", "epochs": 60, "learning_rate": 0.004, "fanout": None},
    "sampling": {"num_batches": 5, "samplers": ["cmcs", "iscs"]},
    "fusion": {"sinkhorn_rounds": 100, "candidates": 50},
}


@dataclass(frozen=True)
class DemoRun:
    """A benchmark and an alignment of it: most links right, the surer the more so."""

    benchmark: Benchmark
    alignment: Alignment
    partitions: dict[str, Partition]

    def report(self, **options: Any) -> ReportData:
        with_links = len(self.benchmark.test_links) > 0
        overlap = {"seeds": 0.981, "test": 0.893, "all": 0.92, "macro": 0.84}
        defaults: dict[str, Any] = {
            "metrics": METRICS if with_links else None,
            "title": "demo",
            "stages": STAGES,
            "partitions": self.partitions,
            "overlaps": {"cmcs": overlap, "iscs": overlap | {"test": 0.846}},
            "rounds": [
                {"round": 1, "new_seeds": 512, "precision": 0.941},
                {"round": 2, "new_seeds": 1034, "precision": 0.929},
            ],
            "config": CONFIG,
            "versions": {"clusterea": "0.1.0", "torch": "2.13.0"},
        }
        return collect(self.benchmark, self.alignment, **(defaults | options))

    def labeled(
        self, label: Callable[[str, str], str], seeds_from: Mapping[str, int] | None = None
    ) -> DemoRun:
        """Labels by side and name; every tenth entity has none."""
        labels = self.benchmark.names.zip(Pair("source", "target")).map(
            lambda side: Texts.of_lists(
                [label(side[1], name), "not preferred"] if number % 10 else []
                for number, name in enumerate(side[0])
            )
        )
        benchmark = replace(self.benchmark, labels=labels, seeds_from=seeds_from or {})
        return replace(self, benchmark=benchmark)


@cache
def demo_run(
    *, test_links: bool = True, rename: Callable[[str], str] | None = None, shape: str = "demo"
) -> DemoRun:
    """A quarter of the links as seeds, the rest found, one in four of them wrong."""
    whole = generate(SHAPES[shape], seed=0)
    links = whole.task.seeds
    seeds, rest = np.split(links, [len(links) // 4])
    rng = np.random.default_rng(0)
    confidence = rng.beta(5, 2, len(rest))
    found = rest.copy()
    wrong = np.flatnonzero(rng.random(len(rest)) > 0.25 + 0.75 * confidence)
    found[wrong, 1] = found[np.roll(wrong, 1), 1]
    change = rename or str
    names, relation_names = (
        side.map(lambda some: Names([change(name) for name in some]))
        for side in (whole.names, whole.relation_names)
    )
    benchmark = Benchmark(
        AlignmentTask(whole.task.graphs, seeds, names.map(lambda some: some.keys())),
        rest if test_links else np.empty((0, 2), dtype=np.int64),
        names,
        relation_names,
        whole.dangling if test_links else None,
    )
    taken = Pair(
        np.concatenate([seeds[:, 0], found[:, 0]]), np.concatenate([seeds[:, 1], found[:, 1]])
    )
    unmatched = taken.zip(whole.task.graphs).map(
        lambda side: torch.from_numpy(np.setdiff1d(np.arange(side[1].num_entities), side[0]))
    )
    alignment = Alignment(
        torch.from_numpy(found), torch.from_numpy(confidence), unmatched, examples=214
    )
    partitions = {
        name: _partition(whole.task, batches, rng)
        for name, batches in (("cmcs", 5), ("iscs", 5), ("metis-cps", 30))
    }
    return DemoRun(benchmark, alignment, partitions)


def _partition(task: AlignmentTask, batches: int, rng: np.random.Generator) -> Partition:
    labels = task.graphs.map(lambda graph: rng.binomial(batches - 1, 0.5, graph.num_entities))
    return Partition(labels.map(torch.from_numpy), batches)
