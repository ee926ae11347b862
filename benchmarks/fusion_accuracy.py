"""ClusterEA on IDS15K beside the paper's tables 1 and 3: leak-free, with the `paper` preset.

    .venv/bin/python benchmarks/fusion_accuracy.py --data FOLDER [--rows NAME …] [--seeds 0 1 2]

FOLDER holds the pairs. 30 % seeds (the first of the file; DBP15K and others by their own split).
Every stage sees every entity that is no seed, and no test link. Ranks are among the test targets,
and beside them among all targets; ties count at their expectation. Rows with "without" are the
paper's ablation. `--set` changes settings, as `sampling.classifier=softmax`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import torch

import clusterea
from clusterea.config import Config, preset
from clusterea.evaluation import evaluate
from clusterea.evaluation.overlap import overlap
from clusterea.fusion import fuse
from clusterea.matching import match
from clusterea.samplers import Place, sample
from clusterea.training import train
from clusterea.types import Benchmark, Pair, Partition

PAIRS = ("ids15k-en-fr", "ids15k-en-de")
# Row → (model, what is changed, the paper's H@1 on both pairs, the least it should have here)
ROWS: dict[str, tuple[str, list[str], tuple[float, float] | None, tuple[float, float] | None]] = {
    "ClusterEA-D": ("dual-amn", [], (67.4, 79.5), (66.5, 78.5)),
    "ClusterEA-R": ("rrea", [], (67.9, 79.4), (66.5, 78.5)),
    "ClusterEA-G": ("gcn-align", [], (46.6, 62.0), (43.0, 60.0)),
    "without Sp-CSLS": ("dual-amn", ["fusion.csls=false"], None, None),
    "without global similarity": ("dual-amn", ["fusion.global_similarity=false"], None, None),
    "without Sinkhorn": ("dual-amn", ["fusion.sinkhorn=false"], None, None),
    "without CMCS": ("dual-amn", ["samplers=iscs"], None, None),
    "without ISCS": ("dual-amn", ["samplers=cmcs"], None, None),
    "neither sampler": ("dual-amn", ["samplers="], None, None),
    "outside option: best": ("dual-amn", ["fusion.outside=best"], None, None),
    "outside option: neighbors": ("dual-amn", ["fusion.outside=neighbors"], None, None),
}


def configured(model: str, changes: list[str], larger_side: int, seed: int) -> Config:
    """The paper's preset with a row's changes."""
    named = [change.partition("=")[2] for change in changes if change.startswith("samplers=")]
    samplers = [each for each in named[0].split(",") if each] if named else ["cmcs", "iscs"]
    settings = [change for change in changes if not change.startswith("samplers=")]
    chosen = None if model == "dual-amn" else model
    return preset(
        "paper", larger_side, model=chosen, samplers=samplers, seed=seed, settings=settings
    )


class Runs:
    """Trains and samples once for what several rows share."""

    def __init__(self, device: torch.device, *, matching: bool) -> None:
        self._device = device
        self._matching = matching
        self._embeddings: dict[Any, tuple[Pair[torch.Tensor], float]] = {}
        self._partitions: dict[Any, tuple[Partition, float]] = {}

    def measure(self, benchmark: Benchmark, name: str, config: Config) -> dict[str, Any]:
        """The figures of one run."""
        task, device = benchmark.task, self._device
        trained = (name, repr(config.training))
        if trained not in self._embeddings:
            start = time.perf_counter()
            embeddings = train(task, config.training, device=device)
            self._embeddings[trained] = embeddings, time.perf_counter() - start
        embeddings, training_seconds = self._embeddings[trained]
        partitions, sampling_seconds = [], {}
        for sampler in config.samplers:
            key = (*trained, sampler, repr(config.sampling))
            if key not in self._partitions:
                start = time.perf_counter()
                partition = sample(sampler, task, embeddings, config.sampling, Place(device))
                self._partitions[key] = partition, time.perf_counter() - start
            partitions.append(self._partitions[key][0])
            sampling_seconds[sampler] = self._partitions[key][1]
        start = time.perf_counter()
        similarity = fuse(
            [embeddings], partitions, task.seeds, task.tie_keys, config.fusion, device=device
        )
        fusion_seconds = time.perf_counter() - start
        alignment, matching_seconds = None, None
        if self._matching:
            start = time.perf_counter()
            keys = task.tie_keys.map(lambda side: torch.from_numpy(side.copy()))
            alignment = match(similarity, keys, task.seeds, method=config.matching.method)
            matching_seconds = time.perf_counter() - start
        metrics = evaluate(similarity, benchmark.test_links, task.seeds, alignment=alignment)
        return {
            **metrics.to_dict(),
            "cells": similarity.num_cells,
            "overlap": {
                sampler: overlap(partition, benchmark).test
                for sampler, partition in zip(config.samplers, partitions, strict=True)
            },
            "seconds": {
                "training": training_seconds,
                "sampling": sampling_seconds,
                "fusion": fusion_seconds,
                "matching": matching_seconds,
            },
        }


def read(folder: Path) -> Benchmark:
    """OpenEA's pairs by the first 30 % of their links, others by their own split."""
    has_own = (folder / "sup_ent_ids").exists()
    return clusterea.load(folder) if has_own else clusterea.load(folder, seeds_share=0.3)


def runs(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Every run that was asked for."""
    device = torch.device(arguments.device)
    for pair in arguments.pairs:
        benchmark = read(arguments.data / pair)
        larger = max(graph.num_entities for graph in benchmark.task.graphs)
        for seed in arguments.seeds:
            shared = Runs(device, matching=arguments.matching)
            for row in arguments.rows:
                model, changes, _, _ = ROWS[row]
                config = configured(model, [*changes, *arguments.settings], larger, seed)
                found = shared.measure(benchmark, pair, config)
                yield {
                    "row": row,
                    "pair": pair,
                    "seed": seed,
                    "settings": arguments.settings,
                    "classifier": config.sampling.classifier,
                    "device": str(device),
                    **found,
                }


def table(results: list[dict[str, Any]]) -> str:
    """H@1 of each row, beside the paper's and the least wanted."""
    pairs = list(dict.fromkeys(result["pair"] for result in results))
    lines = ["| | " + " | ".join(f"{p} | all targets | paper, least" for p in pairs) + " |"]
    lines.append("|---" * (1 + 3 * len(pairs)) + "|")
    for row, (_, _, paper, least) in ROWS.items():
        cells = [row]
        for pair in pairs:
            own = [r for r in results if r["row"] == row and r["pair"] == pair]
            if not own:
                cells += ["not run", "", ""]
                continue
            ranked = [100 * r["test_candidates"]["source_to_target"]["hits@1"] for r in own]
            open_ = [100 * r["all_candidates"]["source_to_target"]["hits@1"] for r in own]
            verdict = ""
            if paper and least and pair in PAIRS:
                index = PAIRS.index(pair)
                met = "met" if mean(ranked) >= least[index] else "MISSED"
                verdict = f"{paper[index]}, {least[index]} {met}"
            spread = f"{mean(ranked):.1f} ({min(ranked):.1f} to {max(ranked):.1f})"
            cells += [spread, f"{mean(open_):.1f}", verdict]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measures the rows asked for and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", nargs="*", default=list(ROWS))
    parser.add_argument("--pairs", nargs="*", default=PAIRS)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--set", nargs="*", default=[], dest="settings", metavar="FIELD=VALUE")
    parser.add_argument("--no-matching", action="store_false", dest="matching")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="write every run's figures here, as JSON")
    arguments = parser.parse_args()
    results = []
    for result in runs(arguments):
        results.append(result)
        ranked = result["test_candidates"]["source_to_target"]
        shown = ", ".join(f"{name} {100 * value:.2f}" for name, value in ranked.items())
        seconds = {k: v for k, v in result["seconds"].items() if k != "sampling"}
        print(result["row"], result["pair"], result["seed"], shown, seconds, flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
