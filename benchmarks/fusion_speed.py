"""Seconds and memory of every stage after training, at DBP1M's size, beside the bars.

    .venv/bin/python benchmarks/fusion_speed.py [--like dbp1m-en-fr] [--epochs 1] [--out FILE]

Generates the pair, trains a little (its time is measured by training_speed.py), and then runs
CMCS, ISCS both ways, the whole fusion, matching and evaluation as `align --preset paper` would.
METIS runs in processes of its own from the start; what ISCS waits for it is shown apart. `--memory`
bounds the mini-batches, as it does in `align`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch

from clusterea.config import preset
from clusterea.data.synthetic import SHAPES
from clusterea.evaluation import evaluate
from clusterea.evaluation.overlap import overlap
from clusterea.fusion import fuse
from clusterea.matching import match
from clusterea.pipeline import Artifacts, Cuts, choose_device, measured
from clusterea.pipeline.memory import largest_batch
from clusterea.samplers import Resources, sample
from clusterea.sizes import parse_size
from clusterea.training import train
from clusterea.types import IntArray, KnowledgeGraph
from clusterea.workspace import task_key
from pairs import generated

# What each stage may take on one H200-class GPU with 16 cores: seconds, GB of GPU memory.
BARS: dict[str, tuple[float, float | None]] = {
    "cmcs": (30, None),
    "iscs": (30, None),
    "iscs-reverse": (30, None),
    "fusion": (120, 20),
    "evaluation": (5, None),
}
Value = TypeVar("Value")


class Stages:
    """Runs stages and keeps what each costs."""

    def __init__(self, device: torch.device, out: Path | None) -> None:
        self._device = device
        self._out = out
        self.costs: list[dict[str, Any]] = []

    def run(self, name: str, stage: Callable[[], Value]) -> Value:
        with measured(name, self._device) as cost:
            value = stage()
        self.note(cost.to_dict())
        return value

    def note(self, cost: dict[str, Any]) -> None:
        """Prints and writes one stage's cost at once: a killed run keeps what it has."""
        if cost.get("stage") in BARS:
            seconds, gigabytes = BARS[cost["stage"]]
            used = (cost["peak_gpu_bytes"] or 0) / 1e9
            met = cost["seconds"] <= seconds and (gigabytes is None or used <= gigabytes)
            cost |= {"bar_seconds": seconds, "bar_gpu_gb": gigabytes, "met": met}
        self.costs.append(cost)
        print(json.dumps(cost), flush=True)
        if self._out:
            self._out.write_text(json.dumps(self.costs, indent=1) + "\n")


def main() -> None:
    """Measures one pair."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--like", default="dbp1m-en-fr", choices=list(SHAPES))
    parser.add_argument("--epochs", type=int, default=1, help="of training")
    parser.add_argument("--set", nargs="*", default=[], dest="settings", metavar="STAGE.FIELD=V")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--memory", default="20GB", help="of the GPU, or of the host without one")
    parser.add_argument("--out", type=Path, help="write the figures here, as JSON")
    arguments = parser.parse_args()
    device = choose_device(arguments.device)
    stages = Stages(device, arguments.out)

    benchmark = stages.run("generation", lambda: generated(SHAPES[arguments.like]))
    task = benchmark.task
    larger = max(graph.num_entities for graph in task.graphs)
    settings = [f"training.epochs={arguments.epochs}", "sampling.classifier=softmax"]
    config = preset("paper", larger, settings=settings)
    most = largest_batch(parse_size(arguments.memory), device, config, task)
    bound = f"sampling.max_batch={most}"
    config = preset("paper", larger, settings=[*settings, bound, *arguments.settings])
    cuts = Cuts(Artifacts(None), task_key(task), task)
    waited = 0.0

    def cut(graph: KnowledgeGraph, num_parts: int, seed: int) -> IntArray:
        nonlocal waited
        start = time.perf_counter()
        parts = cuts(graph, num_parts, seed)
        waited += time.perf_counter() - start
        return parts

    with cuts:
        cuts.begin(config.samplers, config.sampling.num_batches, config.sampling.seed)
        embeddings = stages.run("training", lambda: train(task, config.training, device=device))
        partitions = []
        for sampler in config.samplers:
            waited = 0.0
            with measured(sampler, device) as cost:
                resources = Resources(device, cut)
                partition = sample(sampler, task, embeddings, config.sampling, resources)
            partitions.append(partition)
            cost.seconds -= waited
            found, sizes = overlap(partition, benchmark), partition.sizes()
            stages.note(
                cost.to_dict()
                | {
                    "waited_for_metis": round(waited, 3),
                    "num_batches": partition.num_batches,
                    "largest": list(sizes.map(max)),
                    "overlap_test": found.test,
                    "overlap_all": found.all,
                    "overlap_macro": found.macro,
                }
            )
    similarity = stages.run(
        "fusion",
        lambda: fuse(
            [embeddings], partitions, task.seeds, task.tie_keys, config.fusion, device=device
        ),
    )
    print(similarity, flush=True)
    keys = task.tie_keys.map(lambda side: torch.from_numpy(side.copy()).to(device))
    alignment = stages.run("matching", lambda: match(similarity, keys, task.seeds))
    metrics = stages.run(
        "evaluation",
        lambda: evaluate(similarity, benchmark.test_links, task.seeds, alignment=alignment),
    )
    stages.note({"metrics": metrics.to_dict()})


if __name__ == "__main__":
    main()
