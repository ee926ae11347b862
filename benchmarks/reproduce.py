"""The paper's tables 1, 2 and 3 and its figure 4: our rows beside its rows, and ours beyond it.

    .venv/bin/python benchmarks/reproduce.py --data FOLDER --rows ClusterEA-D --pairs ids15k-en-fr
    .venv/bin/python benchmarks/reproduce.py --write docs/results.md

Every row has a file of its own in `--results`, whole after each run: what is there is not run
again. Pairs are folders in FOLDER (ids15k-*, ids100k-*, dbp15k-*, debian-*, dbp1m-*) or, for
`NAME-generated`, generated with the counts of NAME. 30 % of the links are seeds: the first of the
file, random ones on debian. `paper` preset; `--set` changes settings. Ranks are source to target
among the test targets, ties at their expectation, and beside them among all targets.

`oracle filter` is no result: it is what the authors' release does, cutting each mini-batch down
with the *test* links before Sinkhorn. It lives here alone, to show what that is worth.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch import Tensor

import clusterea
from clusterea.config import Config, FusionConfig, preset, training_config
from clusterea.data.synthetic import SHAPES, generate
from clusterea.evaluation import evaluate
from clusterea.fusion import fuse
from clusterea.pipeline import StageCost, align, choose_device, measured
from clusterea.pipeline.largeea import largeea
from clusterea.types import Benchmark, IntArray, Pair, Partition, Similarity
from clusterea.workspace import write_json

Record = dict[str, Any]
SHARE = 0.3
GENERATED = "-generated"


@dataclass(frozen=True, slots=True)
class Made:
    """What a row made of a pair."""

    similarity: Similarity
    costs: list[StageCost]


@dataclass(frozen=True, slots=True)
class Asked:
    """One run."""

    benchmark: Benchmark
    seed: int
    device: torch.device
    settings: list[str]

    @property
    def larger_side(self) -> int:
        return max(graph.num_entities for graph in self.benchmark.task.graphs)

    def config(self, name: str = "paper", **choices: Any) -> Config:
        settings = [*choices.pop("settings", ()), *self.settings]
        return preset(name, self.larger_side, seed=self.seed, settings=settings, **choices)


Run = Callable[[Asked], Made]


def by_preset(name: str = "paper", **choices: Any) -> Run:
    """`clusterea.align` with a preset, changed."""

    def run(asked: Asked) -> Made:
        result = align(asked.benchmark.task, asked.config(name, **choices), asked.device)
        return Made(result.similarity, list(result.timings))

    return run


def by_encoder(model: str, *, full_graph: bool) -> Run:
    """One encoder and the Sp-CSLS of its nearest neighbours: the paper's baselines."""

    def run(asked: Asked) -> Made:
        from clusterea.training import train

        task, device = asked.benchmark.task, asked.device
        config = asked.config(model=model).training
        if full_graph:
            config = training_config(model, full_graph=True, seed=asked.seed)
        with measured("training", device) as training:
            embeddings = train(task, config, device=device)
        with measured("fusion", device) as fusion:
            found = fuse([embeddings], [], task.seeds, task.tie_keys, FusionConfig(), device=device)
        return Made(found, [training, fusion])

    return run


def by_largeea(model: str) -> Run:
    """LargeEA's structure channel with one model."""

    def run(asked: Asked) -> Made:
        config = asked.config(model=model)
        with measured("all", asked.device) as cost:
            found = largeea(
                asked.benchmark.task, config.training, config.sampling, config.fusion, asked.device
            )
        return Made(found, [cost])

    return run


def with_test_links(partition: Partition, links: IntArray) -> Partition:
    """Only who is in one mini-batch with its true counterpart stays in it: an oracle.

    All others go to two mini-batches that have one side only, which no fusion normalizes.
    """
    source, target = partition.labels.map(torch.clone)
    ends = torch.from_numpy(links.copy())
    together = ends[source[ends[:, 0]] == target[ends[:, 1]]]

    def kept(labels: Tensor, entities: Tensor, nowhere: int) -> Tensor:
        result = torch.full_like(labels, nowhere)
        result[entities] = labels[entities]
        return result

    count = partition.num_batches
    labels = Pair(kept(source, together[:, 0], count), kept(target, together[:, 1], count + 1))
    return Partition(labels, count + 2)


def oracle_filter(asked: Asked) -> Made:
    """ClusterEA-D with mini-batches cut down by the test links, as the authors' release does."""
    task, config = asked.benchmark.task, asked.config()
    result = align(task, config, asked.device)
    filtered = [
        with_test_links(partition, asked.benchmark.test_links)
        for partition in result.partitions.values()
    ]
    with measured("fusion", asked.device) as cost:
        found = fuse(
            result.encodings, filtered, task.seeds, task.tie_keys, config.fusion,
            device=asked.device,
        )  # fmt: skip
    return Made(found, [*result.timings, cost])


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: how it is made, and the paper's H@1, H@10 and MRR on its pairs."""

    run: Run
    paper: dict[str, tuple[float, float, float]]


FR15, DE15, FR100, DE100 = "ids15k-en-fr", "ids15k-en-de", "ids100k-en-fr", "ids100k-en-de"
FR1M, DE1M = "dbp1m-en-fr", "dbp1m-en-de"
ROWS: dict[str, Row] = {
    "ClusterEA-D": Row(
        by_preset(),
        {
            FR15: (67.4, 89.5, 0.75),
            DE15: (79.5, 94.6, 0.85),
            FR100: (54.2, 78.1, 0.62),
            DE100: (63.7, 82.8, 0.70),
            FR1M: (28.1, 47.4, 0.35),
            DE1M: (28.8, 48.8, 0.35),
        },
    ),
    "Dual-AMN-S": Row(
        by_encoder("dual-amn", full_graph=False),
        {
            FR15: (60.9, 88.9, 0.71),
            DE15: (75.0, 94.3, 0.82),
            FR100: (48.2, 76.6, 0.57),
            DE100: (58.8, 81.4, 0.66),
            FR1M: (22.4, 43.4, 0.29),
            DE1M: (22.0, 41.7, 0.28),
        },
    ),
    "without Sp-CSLS": Row(
        by_preset(settings=["fusion.csls=false"]),
        {FR1M: (27.9, 46.2, 0.34), DE1M: (28.4, 46.0, 0.34)},
    ),
    "without global similarity": Row(
        by_preset(settings=["fusion.global_similarity=false"]),
        {FR1M: (27.6, 48.3, 0.34), DE1M: (28.3, 48.7, 0.35)},
    ),
    "without Sinkhorn": Row(
        by_preset(settings=["fusion.sinkhorn=false"]),
        {FR1M: (20.0, 46.1, 0.29), DE1M: (22.7, 46.2, 0.30)},
    ),
    "without CMCS": Row(
        by_preset(samplers=["iscs"]), {FR1M: (26.5, 46.2, 0.33), DE1M: (26.8, 47.1, 0.33)}
    ),
    "without ISCS": Row(
        by_preset(samplers=["cmcs"]), {FR1M: (25.3, 45.9, 0.32), DE1M: (25.5, 46.5, 0.32)}
    ),
    "without Dual-AMN": Row(
        by_preset(model="gcn-align"), {FR1M: (10.0, 24.5, 0.15), DE1M: (6.9, 17.7, 0.11)}
    ),
    "ClusterEA-R": Row(
        by_preset(model="rrea"),
        {
            FR15: (67.9, 90.0, 0.76),
            DE15: (79.4, 94.5, 0.85),
            FR100: (52.0, 76.3, 0.60),
            DE100: (62.2, 81.7, 0.69),
            FR1M: (26.0, 45.6, 0.32),
            DE1M: (25.0, 45.0, 0.32),
        },
    ),
    "ClusterEA-G": Row(
        by_preset(model="gcn-align"),
        {
            FR15: (46.6, 77.8, 0.57),
            DE15: (62.0, 86.3, 0.70),
            FR100: (30.6, 57.9, 0.40),
            DE100: (41.4, 64.3, 0.49),
            FR1M: (10.0, 24.5, 0.15),
            DE1M: (6.9, 17.7, 0.11),
        },
    ),
    "RREA-S": Row(
        by_encoder("rrea", full_graph=False),
        {
            FR15: (62.7, 90.3, 0.72),
            DE15: (76.3, 95.0, 0.83),
            FR100: (46.4, 75.4, 0.56),
            DE100: (57.3, 80.6, 0.65),
            FR1M: (21.1, 42.2, 0.28),
            DE1M: (20.5, 40.2, 0.27),
        },
    ),
    "GCN-Align-S": Row(
        by_encoder("gcn-align", full_graph=False),
        {
            FR15: (37.1, 73.8, 0.49),
            DE15: (53.6, 83.4, 0.63),
            FR100: (25.3, 45.5, 0.35),
            DE100: (35.5, 61.5, 0.44),
            FR1M: (6.0, 19.1, 0.10),
            DE1M: (4.5, 14.4, 0.08),
        },
    ),
    "LargeEA-D": Row(
        by_largeea("dual-amn"),
        {
            FR15: (45.7, 69.6, 0.54),
            DE15: (58.7, 76.2, 0.65),
            FR100: (33.0, 54.8, 0.40),
            DE100: (28.6, 42.7, 0.65),
            FR1M: (10.5, 21.9, 0.15),
            DE1M: (6.6, 14.7, 0.09),
        },
    ),
    "LargeEA-R": Row(
        by_largeea("rrea"),
        {
            FR15: (47.2, 74.0, 0.56),
            DE15: (58.0, 77.6, 0.65),
            FR100: (32.5, 55.5, 0.40),
            DE100: (27.3, 42.5, 0.32),
            FR1M: (9.4, 21.5, 0.13),
            DE1M: (6.4, 15.0, 0.09),
        },
    ),
    "LargeEA-G": Row(
        by_largeea("gcn-align"),
        {
            FR15: (30.0, 63.5, 0.39),
            DE15: (40.3, 68.7, 0.50),
            FR100: (19.5, 45.7, 0.28),
            DE100: (21.4, 39.7, 0.27),
            FR1M: (5.1, 13.4, 0.08),
            DE1M: (3.4, 9.5, 0.05),
        },
    ),
    "GCN-Align": Row(
        by_encoder("gcn-align", full_graph=True),
        {FR15: (38.2, 78.5, 0.51), DE15: (58.7, 85.5, 0.67)},
    ),
    "RREA": Row(
        by_encoder("rrea", full_graph=True), {FR15: (63.3, 91.4, 0.73), DE15: (75.5, 94.9, 0.82)}
    ),
    "Dual-AMN": Row(
        by_encoder("dual-amn", full_graph=True),
        {FR15: (64.6, 91.5, 0.74), DE15: (76.5, 95.2, 0.83)},
    ),
    "default": Row(by_preset("default"), {}),
    "fast": Row(by_preset("fast"), {}),
    "oracle filter": Row(oracle_filter, {}),
}
ABLATION = [name for name in ROWS if name.startswith("without")]
FULL_GRAPH = ["GCN-Align", "RREA", "Dual-AMN"]
LARGE_EA = ["LargeEA-G", "LargeEA-R", "LargeEA-D"]
STOCHASTIC = ["GCN-Align-S", "RREA-S", "Dual-AMN-S"]
CLUSTER_EA = ["ClusterEA-G", "ClusterEA-R", "ClusterEA-D"]
OURS = ["default", "fast"]
# Table → its rows, and its pairs: the paper's, and what stands in for those that are not here
TABLES: dict[str, tuple[list[str], list[str]]] = {
    "Table 1: IDS15K and IDS100K": (
        [*FULL_GRAPH, *LARGE_EA, *STOCHASTIC, *CLUSTER_EA, *OURS, "oracle filter"],
        [FR15, DE15, FR100, DE100, FR100 + GENERATED, "debian-100k"],
    ),
    "Table 2: a million entities": (
        [*LARGE_EA, *STOCHASTIC, *CLUSTER_EA, *OURS],
        [FR1M, DE1M, FR1M + GENERATED, DE1M + GENERATED, "debian-1m"],
    ),
    "Table 3: the ablation": (
        ["ClusterEA-D", *ABLATION],
        [FR15, DE15, FR1M, FR1M + GENERATED, "debian-1m"],
    ),
}


# ---- runs


def read(data: Path | None, pair: str) -> Benchmark:
    """A pair with 30 % of its links as seeds, or its own split."""
    if pair.endswith(GENERATED):
        whole = generate(SHAPES[pair.removesuffix(GENERATED)], seed=0)
        links = whole.task.seeds
        count = int(SHARE * len(links))
        return replace(whole, task=whole.task.with_seeds(links[:count]), test_links=links[count:])
    if data is None:
        raise SystemExit(f"{pair}: --data must name the folder that holds it.")
    if pair.startswith("dbp15k"):
        return clusterea.load(data / pair)
    how = "random" if pair.startswith("debian") else "first"
    return clusterea.load(data / pair, split=how, seeds_share=SHARE)


def recorded(row: str, pair: str, asked: Asked) -> Record:
    """The figures of one run."""
    made = ROWS[row].run(asked)
    metrics = evaluate(made.similarity, asked.benchmark.test_links, asked.benchmark.task.seeds)
    gpu = [cost.peak_gpu_bytes or 0 for cost in made.costs]
    return {
        "row": row,
        "pair": pair,
        "seed": asked.seed,
        "settings": asked.settings,
        "metrics": metrics.to_dict(),
        "seconds": round(sum(cost.seconds for cost in made.costs), 3),
        "stages": [cost.to_dict() for cost in made.costs],
        "peak_host_bytes": max(cost.peak_host_bytes for cost in made.costs),
        "peak_gpu_bytes": max(gpu) or None,
        "commit": commit(),
        "hardware": hardware(asked.device),
    }


def commit() -> str | None:
    """The one that is checked out; None outside a repository."""
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or None


def hardware(device: torch.device) -> str:
    """What it ran on, in words."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{torch.get_num_threads()} threads of {platform.processor() or platform.machine()}"


def file_of(results: Path, row: str) -> Path:
    """Where a row's records are kept."""
    return results / f"{re.sub(r'[^a-z0-9]+', '-', row.lower())}.json"


def records_of(results: Path, row: str) -> list[Record]:
    """The records of a row so far."""
    path = file_of(results, row)
    return list(json.loads(path.read_text())) if path.is_file() else []


def run_all(arguments: argparse.Namespace) -> None:
    """Every run asked for that is not there."""
    device = choose_device(arguments.device)
    for pair in arguments.pairs:
        benchmark: Benchmark | None = None
        for row in arguments.rows:
            kept = records_of(arguments.results, row)
            for seed in arguments.seeds:
                identity = {"pair": pair, "seed": seed, "settings": arguments.settings}
                if any(all(each[k] == v for k, v in identity.items()) for each in kept):
                    continue
                benchmark = benchmark or read(arguments.data, pair)
                asked = Asked(benchmark, seed, device, arguments.settings)
                kept.append(recorded(row, pair, asked))
                arguments.results.mkdir(parents=True, exist_ok=True)
                write_json(file_of(arguments.results, row), kept)
                print(line(kept[-1]), flush=True)


def line(record: Record) -> str:
    """A line for who waits."""
    found = record["metrics"]["test_candidates"]["source_to_target"]
    return (
        f"{record['row']} {record['pair']} {record['seed']}: H@1 {100 * found['hits@1']:.1f}, "
        f"H@10 {100 * found['hits@10']:.1f}, MRR {found['mrr']:.3f}, {record['seconds']:.1f} s"
    )


# ---- the page

HEAD = """\
# Results

Every table of the paper with our figures beside its own, made by `benchmarks/reproduce.py` from the
files in `benchmarks/results/reproduce`; nothing here is written by hand. H@1 / H@10 / MRR among the
test targets, source to target, ties at their expectation; 30 % seeds. Ours are leak-free. Below
them in parentheses the paper's, whose release filters mini-batches by the test links. *not run*:
nobody has run that row on that pair yet. A pair whose name ends in *generated* has the counts of
the real one and another structure, so its accuracy is not the paper's to compare with.
"""


def cell(row: str, pair: str, records: Sequence[Record]) -> str:
    """Ours and the paper's."""
    own = [each for each in records if each["pair"] == pair and not each["settings"]]
    paper = ROWS[row].paper.get(pair)
    theirs = f"<br>({paper[0]} / {paper[1]} / {paper[2]:.2f})" if paper else ""
    if not own:
        return f"not run{theirs}"
    ranked = [each["metrics"]["test_candidates"]["source_to_target"] for each in own]
    firsts = [100 * each["hits@1"] for each in ranked]
    spread = f" ({min(firsts):.1f} to {max(firsts):.1f})" if len(firsts) > 1 else ""
    tenth, mrr = mean(100 * each["hits@10"] for each in ranked), mean(e["mrr"] for e in ranked)
    return f"**{mean(firsts):.1f}**{spread} / {tenth:.1f} / {mrr:.2f}{theirs}"


def costs(results: Path, rows: Sequence[str], pairs: Sequence[str]) -> Iterator[str]:
    """Seconds and memory of what was run; with several seeds, the means."""
    yield "| row | pair | seconds | GPU, GB | host, GB | stages, seconds | on | commit |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows:
        for pair in pairs:
            own = [r for r in records_of(results, row) if r["pair"] == pair and not r["settings"]]
            if not own:
                continue
            stages: dict[str, float] = {}
            for cost in own[0]["stages"]:
                name = re.sub(r", round \d+$", "", cost["stage"])
                stages[name] = stages.get(name, 0.0) + cost["seconds"]
            shown = ", ".join(f"{name} {seconds:.1f}" for name, seconds in stages.items())
            seconds = mean(r["seconds"] for r in own)
            gpu = max((r["peak_gpu_bytes"] or 0) for r in own) / 1e9
            host = max(r["peak_host_bytes"] for r in own) / 1e9
            yield (
                f"| {row} | {pair} | {seconds:.1f} | {gpu:.1f} | {host:.1f} | {shown} "
                f"| {own[0]['hardware']} | {own[0]['commit'] or ''} |"
            )


def page(results: Path) -> str:
    """`docs/results.md`."""
    parts = [HEAD]
    for title, (rows, pairs) in TABLES.items():
        shown = [
            p for p in pairs if any(r["pair"] == p for n in rows for r in records_of(results, n))
        ]
        shown = shown or pairs[:2]
        lines = [f"## {title}", "", f"| | {' | '.join(shown)} |", "|---" * (len(shown) + 1) + "|"]
        for row in rows:
            records = records_of(results, row)
            lines.append(f"| {row} | {' | '.join(cell(row, pair, records) for pair in shown)} |")
        missing = [pair for pair in pairs if pair not in shown]
        if missing:
            lines += ["", f"Not run on {', '.join(missing)}."]
        parts.append("\n".join([*lines, "", *costs(results, rows, shown)]) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Runs what was asked for, or writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder of the pairs")
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=ROWS, metavar="ROW")
    parser.add_argument("--pairs", nargs="*", default=[FR15, DE15])
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--set", nargs="*", default=[], dest="settings", metavar="STAGE.FIELD=V")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--results", type=Path, default=Path("benchmarks/results/reproduce"))
    parser.add_argument("--write", type=Path, metavar="PAGE.md", help="run nothing: write the page")
    arguments = parser.parse_args()
    if arguments.write is None:
        run_all(arguments)
    else:
        arguments.write.write_text(page(arguments.results))


if __name__ == "__main__":
    main()
