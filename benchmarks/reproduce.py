"""The paper's tables 1, 2 and 3 and its figure 4: our rows beside its rows, and ours beyond it.

    .venv/bin/python benchmarks/reproduce.py --data FOLDER --rows ClusterEA-D --pairs ids15k-en-fr
    .venv/bin/python benchmarks/reproduce.py --write docs/results.md --readme README.md

Every row has a file of its own in `--results`, whole after each run: what is there is not run
again. Pairs are folders in FOLDER (ids15k-*, ids100k-*, dbp15k-*, debian-*, dbp1m-*) or, for
`NAME-generated`, generated with the counts of NAME. 30 % of the links are seeds: the first of the
file, random ones on debian. `paper` preset; `--set` changes settings. Ranks are source to target
among the test targets, ties at their expectation, and beside them among all targets.

Rows that are run in one process train the same encoder and cut the same mini-batches once for each
pair and seed. The record of each has the costs of all its stages: what it would take alone, up to
the similarity. `default` and `fast` are whole runs of `align`, with its matching.

`oracle filter` is no result: it is what the authors' release does, cutting each mini-batch down
with the *test* links before Sinkhorn. It lives here alone, to show what that is worth.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any, Protocol, TypeVar, get_args

import torch
from torch import Tensor

import clusterea
from clusterea.config import Config, TrainingConfig, preset, training_config, with_settings
from clusterea.config.sampling import ClassifierName
from clusterea.data.synthetic import SHAPES, generate
from clusterea.errors import InputError
from clusterea.evaluation import evaluate
from clusterea.pipeline import (
    Artifacts,
    Cuts,
    Known,
    align,
    choose_device,
    fuse_stage,
    measured,
    sample_stage,
    train_stage,
)
from clusterea.pipeline.largeea import METIS_CPS, largeea
from clusterea.pipeline.memory import largest_batch, parse_size
from clusterea.types import Benchmark, IntArray, Pair, Partition, Similarity
from clusterea.workspace import recipe_key, task_key, write_json
from provenance import commit, device_name, without_round

Record = dict[str, Any]
Value = TypeVar("Value")
SHARE = 0.3
GENERATED = "-generated"
CLASSIFIER = "xgboost"  # the paper's


@dataclass(frozen=True, slots=True)
class Made:
    """What a row made of a pair, and what each stage cost."""

    similarity: Similarity
    stages: list[Record]


@dataclass(frozen=True, slots=True)
class Asked:
    """What all rows are run with."""

    benchmark: Benchmark
    seed: int
    device: torch.device
    settings: list[str]
    classifier: str = CLASSIFIER  # of CMCS
    memory: str | None = None  # that rows with samplers may take

    def config(self, name: str = "paper", **choices: Any) -> Config:
        """A preset, changed."""
        task = self.benchmark.task
        larger_side = max(graph.num_entities for graph in task.graphs)
        settings = [*choices.pop("settings", ()), *self.settings]
        choose = partial(preset, name, larger_side, seed=self.seed, **choices)
        config = choose(settings=settings)
        if "cmcs" in config.samplers:
            settings = [f"sampling.classifier={self.classifier}", *settings]
        if self.memory and config.samplers:
            bound = largest_batch(parse_size(self.memory), self.device, config, task)
            settings = [f"sampling.max_batch={bound}", *settings]
        return choose(settings=settings)


class Memo(Artifacts):
    """The encoders and mini-batches of one pair and seed, in memory, with what each cost."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(None)
        task = asked.benchmark.task
        self.known = Known(task, {"task": task_key(task)})
        self.cuts = Cuts(self, self.known.parents["task"], task)
        self._device = asked.device
        self._kept: dict[str, Any] = {}
        self._costs: dict[str, Record] = {}

    def has(self, key: str) -> bool:
        return key in self._kept

    def tensors(
        self,
        stage: str,
        recipe: Mapping[str, Any],
        parents: Mapping[str, str],
        make: Callable[[], Value],
        pack: Callable[[Value], Mapping[str, Tensor]],
        unpack: Callable[[Mapping[str, Tensor]], Value],
    ) -> tuple[str, Value]:
        key = recipe_key(stage, recipe, parents)
        if key not in self._kept:
            _, value = super().tensors(stage, recipe, parents, make, pack, unpack)
            if stage == "fuse":  # of one row alone
                return key, value
            self._kept[key] = value
        return key, self._kept[key]

    def timed(self, stage: str, run: Callable[[], tuple[str, Value]]) -> tuple[str, Value, Record]:
        """A stage's key and value, and its cost: of the first time, if it was run before."""
        self.made.clear()
        with measured(stage, self._device) as cost:
            key, value = run()
        if key not in self.made:
            return key, value, {**self._costs[key], "shared": True}
        self._costs[key] = cost.to_dict()
        return key, value, self._costs[key]

    def begin_cuts(self, configs: Sequence[Config]) -> None:
        """Begins what the samplers of these will ask METIS for, beside training."""
        for config in configs:
            self.cuts.begin(config.samplers, config.sampling.num_batches, config.sampling.seed)

    def keep_for(self, configs: Sequence[Config]) -> None:
        """Forgets the encoders that none of these has: at a million entities each has 10 GB."""
        parents = self.known.parents
        needed = {recipe_key("train", config.training.recipe(), parents) for config in configs}
        for key in [key for key in self._kept if key.startswith("train-")]:
            if key not in needed:
                del self._kept[key]


class Run(Protocol):
    """How a row is made."""

    @property
    def samplers(self) -> Collection[str]: ...
    def __call__(self, asked: Asked, memo: Memo) -> Made: ...


@dataclass(frozen=True, slots=True)
class Staged:
    """The paper's stages, up to the similarity; those that other rows have too are made once."""

    model: str = "dual-amn"
    samplers: Collection[str] = ("cmcs", "iscs")
    settings: Collection[str] = ()
    full_graph: bool = False
    oracle: bool = False  # mini-batches are cut down by the test links

    def config(self, asked: Asked) -> Config:
        config = asked.config(model=self.model, samplers=self.samplers, settings=self.settings)
        if config.self_training.rounds or config.matching.held_out:
            raise InputError("rows of the paper have no self-training and hold out no seeds.")
        return replace(config, training=self._full(asked)) if self.full_graph else config

    def _full(self, asked: Asked) -> TrainingConfig:
        own = [each for each in asked.settings if each.startswith("training.")]
        return with_settings(training_config(self.model, full_graph=True, seed=asked.seed), own)

    def __call__(self, asked: Asked, memo: Memo) -> Made:
        config, known, device = self.config(asked), memo.known, asked.device
        train_key, embeddings, cost = memo.timed(
            "training", lambda: train_stage(memo, known, config.training, device)
        )
        keys, partitions, stages = {"train": train_key}, {}, [cost]
        for sampler in config.samplers:
            keys[sampler], partitions[sampler], cost = memo.timed(
                f"sampling: {sampler}",
                partial(
                    sample_stage, memo, train_key, known, lambda: embeddings, sampler,
                    config.sampling, device, memo.cuts,
                ),
            )  # fmt: skip
            stages.append(cost)
        if self.oracle:
            links = asked.benchmark.test_links
            partitions = {name: with_test_links(each, links) for name, each in partitions.items()}
        _, similarity, cost = memo.timed(
            "fusion",
            lambda: fuse_stage(
                memo, keys, known.task, lambda: [embeddings], partitions, config.fusion, device
            ),
        )
        return Made(similarity, [*stages, cost])


@dataclass(frozen=True, slots=True)
class Whole:
    """`clusterea.align` with a preset of ours."""

    preset: str

    @property
    def samplers(self) -> Collection[str]:
        return preset(self.preset, 0).samplers

    def __call__(self, asked: Asked, memo: Memo) -> Made:
        result = align(asked.benchmark.task, asked.config(self.preset), asked.device)
        return Made(result.similarity, [cost.to_dict() for cost in result.timings])


@dataclass(frozen=True, slots=True)
class LargeEA:
    """LargeEA's structure channel with one model."""

    model: str
    samplers: Collection[str] = (METIS_CPS,)

    def __call__(self, asked: Asked, memo: Memo) -> Made:
        config = asked.config(model=self.model, samplers=self.samplers)
        with measured("all", asked.device) as cost:
            found = largeea(
                asked.benchmark.task, config.training, config.sampling, config.fusion, asked.device
            )
        return Made(found, [cost.to_dict()])


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


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: how it is made, and the paper's H@1, H@10 and MRR on its pairs."""

    run: Run
    paper: dict[str, tuple[float, float, float]]


FR15, DE15, FR100, DE100 = "ids15k-en-fr", "ids15k-en-de", "ids100k-en-fr", "ids100k-en-de"
FR1M, DE1M = "dbp1m-en-fr", "dbp1m-en-de"
# In the order of running
ROWS: dict[str, Row] = {
    "ClusterEA-D": Row(
        Staged(),
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
        Staged("dual-amn", samplers=()),
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
        Staged(settings=("fusion.csls=false",)),
        {FR1M: (27.9, 46.2, 0.34), DE1M: (28.4, 46.0, 0.34)},
    ),
    "without global similarity": Row(
        Staged(settings=("fusion.global_similarity=false",)),
        {FR1M: (27.6, 48.3, 0.34), DE1M: (28.3, 48.7, 0.35)},
    ),
    "without Sinkhorn": Row(
        Staged(settings=("fusion.sinkhorn=false",)),
        {FR1M: (20.0, 46.1, 0.29), DE1M: (22.7, 46.2, 0.30)},
    ),
    "without CMCS": Row(
        Staged(samplers=("iscs",)), {FR1M: (26.5, 46.2, 0.33), DE1M: (26.8, 47.1, 0.33)}
    ),
    "without ISCS": Row(
        Staged(samplers=("cmcs",)), {FR1M: (25.3, 45.9, 0.32), DE1M: (25.5, 46.5, 0.32)}
    ),
    "without Dual-AMN": Row(
        Staged("gcn-align"), {FR1M: (10.0, 24.5, 0.15), DE1M: (6.9, 17.7, 0.11)}
    ),
    "oracle filter": Row(Staged(oracle=True), {}),
    "default": Row(Whole("default"), {}),
    "fast": Row(Whole("fast"), {}),
    "ClusterEA-R": Row(
        Staged("rrea"),
        {
            FR15: (67.9, 90.0, 0.76),
            DE15: (79.4, 94.5, 0.85),
            FR100: (52.0, 76.3, 0.60),
            DE100: (62.2, 81.7, 0.69),
            FR1M: (26.0, 45.6, 0.32),
            DE1M: (25.0, 45.0, 0.32),
        },
    ),
    "RREA-S": Row(
        Staged("rrea", samplers=()),
        {
            FR15: (62.7, 90.3, 0.72),
            DE15: (76.3, 95.0, 0.83),
            FR100: (46.4, 75.4, 0.56),
            DE100: (57.3, 80.6, 0.65),
            FR1M: (21.1, 42.2, 0.28),
            DE1M: (20.5, 40.2, 0.27),
        },
    ),
    "ClusterEA-G": Row(
        Staged("gcn-align"),
        {
            FR15: (46.6, 77.8, 0.57),
            DE15: (62.0, 86.3, 0.70),
            FR100: (30.6, 57.9, 0.40),
            DE100: (41.4, 64.3, 0.49),
            FR1M: (10.0, 24.5, 0.15),
            DE1M: (6.9, 17.7, 0.11),
        },
    ),
    "GCN-Align-S": Row(
        Staged("gcn-align", samplers=()),
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
        LargeEA("dual-amn"),
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
        LargeEA("rrea"),
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
        LargeEA("gcn-align"),
        {
            FR15: (30.0, 63.5, 0.39),
            DE15: (40.3, 68.7, 0.50),
            FR100: (19.5, 45.7, 0.28),
            DE100: (21.4, 39.7, 0.27),
            FR1M: (5.1, 13.4, 0.08),
            DE1M: (3.4, 9.5, 0.05),
        },
    ),
    "Dual-AMN": Row(
        Staged("dual-amn", samplers=(), full_graph=True),
        {FR15: (64.6, 91.5, 0.74), DE15: (76.5, 95.2, 0.83)},
    ),
    "RREA": Row(
        Staged("rrea", samplers=(), full_graph=True),
        {FR15: (63.3, 91.4, 0.73), DE15: (75.5, 94.9, 0.82)},
    ),
    "GCN-Align": Row(
        Staged("gcn-align", samplers=(), full_graph=True),
        {FR15: (38.2, 78.5, 0.51), DE15: (58.7, 85.5, 0.67)},
    ),
}
# Row → the row that is the same run; the paper has the same figures for both
SAME = {"without Dual-AMN": "ClusterEA-G"}
ABLATION = [name for name in ROWS if name.startswith("without")]
FULL_GRAPH = ["GCN-Align", "RREA", "Dual-AMN"]
LARGE_EA = ["LargeEA-G", "LargeEA-R", "LargeEA-D"]
STOCHASTIC = ["GCN-Align-S", "RREA-S", "Dual-AMN-S"]
CLUSTER_EA = ["ClusterEA-G", "ClusterEA-R", "ClusterEA-D"]
OURS = ["default", "fast"]
MILLION = "Table 2: a million entities"
# Table → its rows, and its pairs: the paper's, and what stands in for those that are not here
TABLES: dict[str, tuple[list[str], list[str]]] = {
    "Table 1: IDS15K and IDS100K": (
        [*FULL_GRAPH, *LARGE_EA, *STOCHASTIC, *CLUSTER_EA, *OURS, "oracle filter"],
        [FR15, DE15, FR100, DE100, FR100 + GENERATED, "debian-100k"],
    ),
    MILLION: (
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


def identity(row: str, pair: str, seed: int, arguments: argparse.Namespace) -> Record:
    """What tells a row's records from each other."""
    samplers = ROWS[row].run.samplers
    return {
        "pair": pair,
        "seed": seed,
        "settings": arguments.settings,
        "classifier": arguments.classifier if "cmcs" in samplers else None,
        "memory": arguments.memory if samplers else None,
    }


def figures(row: str, asked: Asked, memo: Memo) -> Record:
    """The figures of one run."""
    made = ROWS[row].run(asked, memo)
    similarity = made.similarity.to(asked.device)  # evaluation works where it is
    metrics = evaluate(similarity, asked.benchmark.test_links, asked.benchmark.task.seeds)
    return {
        "metrics": metrics.to_dict(),
        "seconds": round(sum(cost["seconds"] for cost in made.stages), 3),
        "stages": made.stages,
        "peak_host_bytes": max(cost["peak_host_bytes"] for cost in made.stages),
        "peak_gpu_bytes": max(cost["peak_gpu_bytes"] or 0 for cost in made.stages) or None,
        "commit": commit(),
        "hardware": hardware(asked.device),
    }


def bound_memory(device: torch.device, memory: str | None) -> None:
    """Has the GPU's allocator refuse what is beyond the memory allowed."""
    if device.type == "cuda":
        total = torch.cuda.mem_get_info(device)[1]
        allowed = parse_size(memory) if memory else total
        torch.cuda.set_per_process_memory_fraction(min(1.0, allowed / total), device)


def hardware(device: torch.device) -> str:
    """What it ran on, in words."""
    name = device_name(device)
    return name if device.type == "cuda" else f"{torch.get_num_threads()} threads of {name}"


def file_of(results: Path, row: str) -> Path:
    """Where a row's records are kept."""
    return results / f"{re.sub(r'[^a-z0-9]+', '-', SAME.get(row, row).lower())}.json"


def records_of(results: Path, row: str) -> list[Record]:
    """The records of a row so far."""
    path = file_of(results, row)
    return list(json.loads(path.read_text())) if path.is_file() else []


def add_record(results: Path, record: Record) -> None:
    """Writes a record to those of its row."""
    results.mkdir(parents=True, exist_ok=True)
    row = record["row"]
    write_json(file_of(results, row), [*records_of(results, row), record])


def run_all(arguments: argparse.Namespace) -> None:
    """Every run asked for that is not there; what fails is left out."""
    start = time.monotonic()
    device = choose_device(arguments.device)
    rows = list(dict.fromkeys(SAME.get(row, row) for row in arguments.rows))

    def is_over() -> bool:
        return arguments.limit is not None and time.monotonic() - start >= arguments.limit

    left = 0
    for pair in arguments.pairs:
        benchmark: Benchmark | None = None
        for seed in arguments.seeds:
            missing = [row for row in rows if not is_there(row, pair, seed, arguments)]
            if is_over() or not missing:
                left += len(missing)
                continue
            try:
                benchmark = benchmark or read(arguments.data, pair)
            except Exception as error:
                print(f"{pair}: {failure(error)}", flush=True)
                break
            asked = Asked(
                benchmark, seed, device, arguments.settings, arguments.classifier, arguments.memory
            )
            left += run_rows(missing, pair, asked, arguments, is_over)
    if left:
        print(f"{arguments.limit:g} s are over: {left} runs were not begun.", flush=True)


def run_rows(
    rows: Sequence[str],
    pair: str,
    asked: Asked,
    arguments: argparse.Namespace,
    is_over: Callable[[], bool],
) -> int:
    """Runs and records rows of one pair and seed; how many were not begun."""
    memo = Memo(asked)
    with memo.cuts:
        for place, row in enumerate(rows):
            if is_over():
                return len(rows) - place
            known = {"row": row, **identity(row, pair, asked.seed, arguments)}
            try:
                prepare(rows[place:], asked, memo)
                bound_memory(asked.device, known["memory"])
                record = known | figures(row, asked, memo)
            except Exception as error:
                said = failure(error)
            else:
                add_record(arguments.results, record)
                said = line(record)
            print(f"{row} {pair} {asked.seed}: {said}", flush=True)
            if asked.device.type == "cuda":
                torch.cuda.empty_cache()
    return 0


def prepare(rows: Sequence[str], asked: Asked, memo: Memo) -> None:
    """Has the memo ready for the first of these rows, and free of what none of them needs."""
    runs = [ROWS[row].run for row in rows]
    configs = []
    for run in runs:
        if isinstance(run, Staged):
            with suppress(InputError):  # which that row will raise when it is run
                configs.append(run.config(asked))
    memo.keep_for(configs)
    if isinstance(runs[0], Staged):
        memo.begin_cuts(configs)


def is_there(row: str, pair: str, seed: int, arguments: argparse.Namespace) -> bool:
    """Whether a run is recorded."""
    known = identity(row, pair, seed, arguments)
    kept = records_of(arguments.results, row)
    return any(all(each[k] == v for k, v in known.items()) for each in kept)


def failure(error: Exception) -> str:
    """An error in one line."""
    said = str(error).strip().splitlines() or [""]
    return f"failed, {type(error).__name__}: {said[0]}"


def line(record: Record) -> str:
    """A line for who waits."""
    found = record["metrics"]["test_candidates"]["source_to_target"]
    shared = sum(cost["seconds"] for cost in record["stages"] if cost.get("shared"))
    return (
        f"H@1 {100 * found['hits@1']:.1f}, H@10 {100 * found['hits@10']:.1f}, "
        f"MRR {found['mrr']:.3f}, {record['seconds']:.1f} s"
        + (f", {shared:.1f} s of it shared" if shared else "")
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

Seconds are what a row takes alone: of a stage that several rows share, which was run once, each has
them. Rows of the paper end with the similarity; `default` and `fast` with the matched links.
"""
FIGURE_3 = """\
## Figure 3: the samplers

The overlap and the seconds of each sampler over the number of mini-batches, as a table and a plot:
[sampling](sampling.md#how-they-compare).
"""
README_ROWS = ["ClusterEA-D", *OURS]
README_MARKERS = "<!-- results -->", "<!-- /results -->"


def shown(results: Path, row: str, pair: str) -> list[Record]:
    """A row's records on a pair that go into tables: without `--set`, and run like the last."""
    own = [r for r in records_of(results, row) if r["pair"] == pair and not r["settings"]]
    return [r for r in own if way(r) == way(own[-1])]


def way(record: Record) -> list[str]:
    """How a record was run other than the paper's, or within how much memory."""
    changed = record["classifier"] not in (None, CLASSIFIER)
    found = [f"`sampling.classifier={record['classifier']}`"] if changed else []
    return [*found, *([f"`--memory {record['memory']}`"] if record["memory"] else [])]


def first_hits(records: Sequence[Record]) -> list[float]:
    """H@1 of each, in percent."""
    return [100 * r["metrics"]["test_candidates"]["source_to_target"]["hits@1"] for r in records]


def cell(results: Path, row: str, pair: str) -> str:
    """Ours and the paper's."""
    own = shown(results, row, pair)
    paper = ROWS[row].paper.get(pair)
    theirs = f"<br>({paper[0]} / {paper[1]} / {paper[2]:.2f})" if paper else ""
    if not own:
        return f"not run{theirs}"
    ranked = [each["metrics"]["test_candidates"]["source_to_target"] for each in own]
    firsts = first_hits(own)
    spread = f" ({min(firsts):.1f} to {max(firsts):.1f})" if len(firsts) > 1 else ""
    tenth, mrr = mean(100 * each["hits@10"] for each in ranked), mean(e["mrr"] for e in ranked)
    return f"**{mean(firsts):.1f}**{spread} / {tenth:.1f} / {mrr:.2f}{theirs}"


def notes(results: Path, rows: Sequence[str], pairs: Sequence[str]) -> Iterator[str]:
    """Which cells were run otherwise than the paper says."""
    otherwise: dict[tuple[str, str], list[str]] = {}
    for pair in pairs:
        for row in rows:
            for record in shown(results, row, pair)[-1:]:
                for how in way(record):
                    otherwise.setdefault((how, pair), []).append(row)
    for (how, pair), names in otherwise.items():
        yield f"With {how} on {pair}: {', '.join(names)}."
        yield ""


def seconds_by_stage(records: Sequence[Record]) -> dict[str, float]:
    """The mean seconds of each stage, its rounds together."""
    found: dict[str, float] = {}
    for record in records:
        for cost in record["stages"]:
            name = without_round(cost["stage"])
            found[name] = found.get(name, 0.0) + cost["seconds"] / len(records)
    return found


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    return [f"| {' | '.join(each)} |" for each in (head, ["---"] * len(head), *lines)]


def costs(results: Path, rows: Sequence[str], pairs: Sequence[str]) -> list[str]:
    """Seconds and memory of what was run; with several seeds, the means and the most."""
    lines = []
    for row in rows:
        for pair in pairs:
            own = shown(results, row, pair)
            if not own:
                continue
            seconds = mean(r["seconds"] for r in own)
            gpu = max((r["peak_gpu_bytes"] or 0) for r in own) / 1e9
            host = max(r["peak_host_bytes"] for r in own) / 1e9
            stages = ", ".join(f"{k} {v:.1f}" for k, v in seconds_by_stage(own).items())
            measures = [f"{each:.1f}" for each in (seconds, gpu, host)]
            origin = [own[-1]["hardware"], own[-1]["commit"] or ""]
            lines.append([row, pair, *measures, stages, *origin])
    head = ["row", "pair", "seconds", "GPU, GB", "host, GB", "stages, seconds", "on", "commit"]
    return table(head, lines) if lines else []


def run_pairs(results: Path, rows: Sequence[str], pairs: Sequence[str]) -> list[str]:
    """The pairs that one of the rows was run on."""
    return [pair for pair in pairs if any(shown(results, row, pair) for row in rows)]


def paper_table(results: Path, title: str) -> str:
    """One of the paper's tables, and what its rows cost."""
    rows, pairs = TABLES[title]
    here = run_pairs(results, rows, pairs) or pairs[:2]
    lines = [[row, *(cell(results, row, pair) for pair in here)] for row in rows]
    parts = [f"## {title}", "", *table(["", *here], lines), "", *notes(results, rows, here)]
    missing = [pair for pair in pairs if pair not in here]
    if missing:
        parts += [f"Not run on {', '.join(missing)}.", ""]
    return "\n".join([*parts, *costs(results, rows, here)]).rstrip("\n") + "\n"


def figure_4(results: Path) -> str:
    """Where the time goes at a million entities."""
    here = run_pairs(results, CLUSTER_EA, TABLES[MILLION][1])
    parts = ["## Figure 4: time per stage at a million", ""]
    if not here:
        return "\n".join([*parts, "Not run."]) + "\n"
    found = {
        (row, pair): seconds_by_stage(shown(results, row, pair))
        for pair in here
        for row in CLUSTER_EA
    }
    names = list(dict.fromkeys(name for stages in found.values() for name in stages))
    lines = []
    for (row, pair), stages in found.items():
        every = [
            f"{each:.1f}" for each in [*(stages.get(n, 0.0) for n in names), sum(stages.values())]
        ]
        lines.append([row, pair, *(every if stages else ["not run"] * len(every))])
    head = ["seconds", "pair", *names, "in all"]
    parts += [*table(head, lines), "", *notes(results, CLUSTER_EA, here)]
    return "\n".join(parts).rstrip("\n") + "\n"


def page(results: Path) -> str:
    """`docs/results.md`."""
    tables = [paper_table(results, title) for title in TABLES]
    return "\n".join([HEAD, *tables, FIGURE_3, figure_4(results)])


def readme_table(results: Path) -> list[str]:
    """H@1 of ours beside the paper's, on the pairs that were run."""
    pairs = list(dict.fromkeys(pair for _, pairs in TABLES.values() for pair in pairs))
    here = run_pairs(results, README_ROWS, pairs)
    lines = []
    for row in README_ROWS:
        cells = []
        for pair in here:
            own, paper = shown(results, row, pair), ROWS[row].paper.get(pair)
            ours = f"{mean(first_hits(own)):.1f}" if own else "not run"
            cells.append(f"{ours} ({paper[0]})" if paper else ours)
        lines.append([row, *cells])
    return table(["H@1, %", *here], lines) if here else ["Not run."]


def with_results(text: str, lines: Sequence[str]) -> str:
    """A document with these lines between its markers."""
    begin, end = README_MARKERS
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"--readme: there must be {begin} and, below it, {end} in the file.")
    return "\n".join([before + begin, "", *lines, "", end + after])


def main() -> None:
    """Runs what was asked for, or writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder of the pairs")
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=ROWS, metavar="ROW")
    parser.add_argument("--pairs", nargs="*", default=[FR15, DE15])
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--set", nargs="*", default=[], dest="settings", metavar="STAGE.FIELD=V")
    parser.add_argument(
        "--classifier", default=CLASSIFIER, choices=get_args(ClassifierName), help="of CMCS"
    )
    parser.add_argument("--memory", metavar="SIZE", help="of rows with samplers, as 20GiB")
    parser.add_argument(
        "--limit", type=float, metavar="SECONDS", help="begin no run after so many seconds"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--results", type=Path, default=Path("benchmarks/results/reproduce"))
    parser.add_argument("--write", type=Path, metavar="PAGE.md", help="run nothing: write the page")
    parser.add_argument(
        "--readme", type=Path, metavar="FILE.md", help="run nothing: write H@1 between its markers"
    )
    arguments = parser.parse_args()
    if arguments.write is not None:
        arguments.write.write_text(page(arguments.results))
    if arguments.readme is not None:
        text = arguments.readme.read_text()
        arguments.readme.write_text(with_results(text, readme_table(arguments.results)))
    if arguments.write is None and arguments.readme is None:
        run_all(arguments)


if __name__ == "__main__":
    main()
