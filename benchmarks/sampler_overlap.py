"""The paper's figure 3: how many links the samplers keep together, as a table and as a plot.

    .venv/bin/python benchmarks/sampler_overlap.py --data FOLDER --million generate \
        --out benchmarks/results/sampler_overlap.json --plot docs/sampler_overlap.svg

FOLDER holds ids15k-en-fr and ids15k-en-de; 30 % of the links are seeds (the first of the file).
`--million` is `generate` (DBP1M's EN-FR), another shape's name, or a folder. Either part may be
left out. With the same `--out`, a run that was killed goes on where it stopped; `--only-plot`
measures nothing. ISCS and METIS-CPS are the means of both directions, seconds too.

`seconds` are a sampler's own. METIS's first cut, which needs no embeddings, stands apart: at a
million entities all cuts run beside training and each other, each in a process whose start is
counted; and so does METIS-CPS, whose seconds hold its second cut.

Bars, with Dual-AMN-S embeddings, on test links, mean of three seeds, at K = 5 on EN-FR and EN-DE:
CMCS 90 % and 93 %, ISCS 85 % and 89 %, both above METIS-CPS; VPS near 1/K, and 0.3 + 0.7/K on all
links; no mini-batch over twice the mean. Seconds: 30 for each but METIS-CPS, at IDS15K on two CPU
cores, and at DBP1M's size with K = 30 on one H200-class GPU (CMCS with softmax).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import clusterea
from clusterea.config import SamplingConfig, TrainingConfig, training_config, with_settings
from clusterea.data.synthetic import SHAPES
from clusterea.errors import InputError
from clusterea.evaluation.overlap import overlap
from clusterea.graph.metis import RunningMetis, SimpleGraph, begin, simple_graph
from clusterea.samplers import Resources, find_sampler, metis_cut, recipe, sample
from clusterea.training import train
from clusterea.types import AlignmentTask, Benchmark, IntArray, KnowledgeGraph, Pair, Partition
from clusterea.workspace import Workspace, read_tensors, recipe_key, task_key, write_json
from pairs import GENERATED, SEEDS_SHARE, generated
from plots import Look, Panel, Point, small_multiples

PAIRS = ("ids15k-en-fr", "ids15k-en-de")
# A row of the figure → the samplers it is the mean of
ROWS: dict[str, tuple[str, ...]] = {
    "cmcs": ("cmcs",),
    "iscs": ("iscs", "iscs-reverse"),
    "metis-cps": ("metis-cps", "metis-cps-reverse"),
    "vps": ("vps",),
}
LOOKS = {  # Okabe and Ito's colours, which the colour-blind can tell apart
    "cmcs": Look("CMCS", "#0072B2", "o"),
    "iscs": Look("ISCS", "#D55E00", "s"),
    "metis-cps": Look("METIS-CPS", "#009E73", "^"),
    "vps": Look("VPS", "#7F7F7F", "D"),
}
IDS, MILLION, XGBOOST = "ids15k", "million", "xgboost"  # the parts of the benchmark
MILLION_SHAPE, MILLION_SEED = "dbp1m-en-fr", 0
MILLION_GCN_EPOCHS = 3000
TIMED_BATCHES = 30  # K of the bars at a million entities
BARS = {PAIRS[0]: {"cmcs": 0.90, "iscs": 0.85}, PAIRS[1]: {"cmcs": 0.93, "iscs": 0.89}}
BARS_BATCHES, MOST_SHARE, MOST_SECONDS, NEAR = 5, 2, 30, 0.02

Record = dict[str, Any]
CutKey = tuple[int, int, int]  # the graph's `id`, parts, seed


@dataclass(frozen=True, slots=True)
class Run:
    """One sampling: what its record is about."""

    part: str
    pair: str
    sampler: str
    config: SamplingConfig
    epochs: int  # of the training that made the embeddings
    seeds: int | None = None  # the first so many only; None: all
    on: str | None = None  # cpu or cuda, where that is what is compared

    @property
    def identity(self) -> Record:
        """What a record must have to be this run's."""
        return {
            "part": self.part,
            "pair": self.pair,
            "sampler": self.sampler,
            "config": recipe(self.sampler, self.config),
            "epochs": self.epochs,
            "seeds_taken": self.seeds,
            "on": self.on,
        }


class Records:
    """The figures of all runs so far, in a file that is whole after each."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        there = path is not None and path.is_file()
        self.all: list[Record] = json.loads(path.read_text()) if path and there else []

    def has(self, run: Run) -> bool:
        wanted = run.identity.items()
        return any(all(each.get(k) == v for k, v in wanted) for each in self.all)

    def add(self, record: Record) -> None:
        self.all.append(record)
        if self._path is not None:
            write_json(self._path, self.all)
        share = record["overlap"]
        print(
            f"{record['pair']} {record['sampler']} K={record['num_batches']} "
            f"seed {record['seed']}: overlap {share['test']:.3f} (test), {share['all']:.3f} (all), "
            f"{duration(record['seconds'])} s",
            flush=True,
        )


class Cut(NamedTuple):
    """METIS's parts, and its own seconds."""

    parts: IntArray
    seconds: float


class TimedCut:
    """Cuts graphs for a sampler and notes METIS's own seconds, and those the sampler waited."""

    def __init__(self, begun: dict[CutKey, Future[Cut]]) -> None:
        self._begun = begun
        self.metis_seconds: float | None = None
        self.waited = 0.0

    def __call__(self, graph: KnowledgeGraph, num_parts: int, seed: int) -> IntArray:
        start = time.perf_counter()
        begun = self._begun.get((id(graph), num_parts, seed))
        parts = begun.result().parts if begun else metis_cut(graph, num_parts, seed)
        waited = time.perf_counter() - start
        self.waited += waited
        own = begun.result().seconds if begun else waited
        self.metis_seconds = (self.metis_seconds or 0.0) + own
        return parts


class Sampled(NamedTuple):
    """A partition and what it cost."""

    partition: Partition
    seconds: float  # without METIS's first cut
    metis_seconds: float | None
    gpu_peak_bytes: int | None


def sampled(
    run: Run,
    task: AlignmentTask,
    embeddings: Pair[Tensor],
    device: torch.device,
    cuts: dict[CutKey, Future[Cut]],
) -> Sampled:
    """One sampling, here and now."""
    cut = TimedCut(cuts)
    on_gpu = device.type == "cuda"
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    partition = sample(run.sampler, task, embeddings, run.config, Resources(device, cut))
    if on_gpu:
        torch.cuda.synchronize(device)
    seconds = time.perf_counter() - start - cut.waited
    peak = torch.cuda.max_memory_allocated(device) if on_gpu else None
    return Sampled(partition, seconds, cut.metis_seconds, peak)


def record_of(run: Run, benchmark: Benchmark, result: Sampled, device: torch.device) -> Record:
    """The figures of one run."""
    partition, seconds, metis_seconds, peak = result
    share = overlap(partition, benchmark)
    entities = [len(side) for side in partition.labels]
    largest = [max(sizes) for sizes in partition.sizes()]
    on_gpu = device.type == "cuda"
    return {
        **run.identity,
        "num_batches": run.config.num_batches,
        "effective_batches": partition.num_batches,
        "seed": run.config.seed,
        "classifier": run.config.classifier if run.sampler == "cmcs" else None,
        "seeds": benchmark.task.num_seeds,
        "overlap": {
            "seeds": share.seeds,
            "test": share.test,
            "all": share.all,
            "macro": share.macro,
        },
        "entities": entities,
        "largest": largest,
        "largest_over_mean": [
            most * partition.num_batches / count
            for most, count in zip(largest, entities, strict=True)
        ],
        "seconds": seconds,
        "metis_seconds": metis_seconds,
        "gpu_peak_bytes": peak,
        "device": torch.cuda.get_device_name(device)
        if on_gpu
        else f"cpu, {torch.get_num_threads()} threads",
    }


def sampled_beside(run: Run, task: AlignmentTask, cut: Cut) -> tuple[Pair[IntArray], int, float]:
    """Labels, mini-batches and seconds of a sampling that needs no embeddings."""
    torch.set_num_threads(1)
    side = find_sampler(run.sampler).graph_to_cut(task.graphs)
    done: Future[Cut] = Future()
    done.set_result(cut)
    cuts = {(id(side), run.config.num_batches, run.config.seed): done}
    nothing = task.graphs.map(lambda graph: torch.empty(graph.num_entities, 0))
    partition, seconds, _, _ = sampled(run, task, nothing, torch.device("cpu"), cuts)
    return partition.labels.map(lambda labels: labels.numpy()), partition.num_batches, seconds


class Beside(NamedTuple):
    """What runs beside training: METIS's cuts, and METIS-CPS after them."""

    cuts: dict[CutKey, Future[Cut]]
    samples: dict[Run, Future[Sampled]]


@contextmanager
def beside(task: AlignmentTask, runs: Sequence[Run]) -> Iterator[Beside]:
    """Every cut that the runs need, begun at once, each in a process of its own."""
    processes: dict[CutKey, RunningMetis] = {}
    begun: dict[CutKey, float] = {}
    simple: dict[int, SimpleGraph] = {}
    first_cut: dict[Run, CutKey] = {}
    for run in runs:
        graph = find_sampler(run.sampler).graph_to_cut(task.graphs)
        if graph is None:
            continue
        if id(graph) not in simple:
            simple[id(graph)] = simple_graph(graph)
        key = (id(graph), run.config.num_batches, run.config.seed)
        first_cut[run] = key
        if key not in processes:
            processes[key] = begin(simple[key[0]], *key[1:])
            begun[key] = time.perf_counter()

    def finish(key: CutKey) -> Cut:
        return Cut(processes[key].result(), time.perf_counter() - begun[key])

    # Spawned: a copy of this process with its threads and its GPU would not be a sound one.
    workers = max(1, min(len(processes), os.cpu_count() or 1))
    pool = ProcessPoolExecutor(
        workers,
        get_context("spawn"),
        initializer=warm_up,
        initargs=(["metis-cps"], SamplingConfig(), torch.device("cpu")),
    )

    def follow(run: Run) -> Sampled:
        cut = cuts[first_cut[run]].result()
        labels, num_batches, seconds = pool.submit(sampled_beside, run, task, cut).result()
        partition = Partition(labels.map(torch.from_numpy), num_batches)
        return Sampled(partition, seconds, cut.seconds, None)

    threads = ThreadPoolExecutor(max(1, 2 * len(first_cut)))
    try:
        cuts = {key: threads.submit(finish, key) for key in processes}
        followers = [run for run in first_cut if run.sampler.startswith("metis-cps")]
        yield Beside(cuts, {run: threads.submit(follow, run) for run in followers})
    finally:
        for process in processes.values():
            process.stop()
        pool.shutdown(wait=False, cancel_futures=True)
        threads.shutdown(wait=False, cancel_futures=True)


def embeddings_of(
    benchmark: Benchmark, config: TrainingConfig, run: Path | None, device: torch.device
) -> Pair[Tensor]:
    """Dual-AMN-S embeddings: those of a run's folder where it is there, otherwise trained."""
    if run is None or not run.is_dir():
        start = time.perf_counter()
        embeddings = train(benchmark.task, config, device=device)
        print(f"trained {config.epochs} epochs in {time.perf_counter() - start:.1f} s", flush=True)
        return embeddings
    workspace = Workspace(run)
    key = recipe_key("train", config.recipe(), {"task": task_key(benchmark.task)})
    if workspace.find(key) is None:
        raise InputError(
            f"{run} must hold {key}: {config.model}, {config.epochs} epochs, seed {config.seed}, "
            "on the same graphs and seeds. It does not; train it, or give another folder with "
            "--embeddings."
        )
    tensors = read_tensors(workspace.tensors_file(key), key)
    return Pair(tensors["source"], tensors["target"])


def warm_up(samplers: Sequence[str], config: SamplingConfig, device: torch.device) -> None:
    """Loads libraries and the device's kernels, which no run is to pay for."""
    task = generated(SHAPES["demo"]).task
    rows = task.graphs.map(lambda graph: torch.randn(graph.num_entities, 8))
    for sampler in samplers:
        run = Run("", "", sampler, replace(config, num_batches=2, gcn_epochs=2), 0)
        sampled(run, task, rows, device, {})


class Plan:
    """The runs that the command line asks for."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self.samplers = [each for row in arguments.samplers for each in ROWS[row]]
        million = arguments.million
        self.shape = MILLION_SHAPE if million == "generate" else million
        self.million = f"{self.shape}{GENERATED}" if self.shape in SHAPES else Path(million).name

    @property
    def xgboost_device(self) -> str:
        """Without its CUDA wheel XGBoost would compute on the CPU and say so in a warning only."""
        from xgboost import build_info

        wanted: str = self._arguments.xgboost_device or self._arguments.device
        return wanted if build_info().get("USE_CUDA") else "cpu"

    def config(self, part: str, num_batches: int, seed: int) -> SamplingConfig:
        """A part's settings, changed as the command line says."""
        config = SamplingConfig(
            num_batches=num_batches, classifier=self._arguments.classifier, seed=seed
        )
        if part != IDS:
            config = replace(config, gcn_epochs=MILLION_GCN_EPOCHS, max_batch=None)
        config = with_settings(config, self._arguments.settings, stage="sampling")
        return replace(config, classifier="xgboost") if part == XGBOOST else config

    def training(self, part: str, seed: int) -> TrainingConfig:
        config = training_config("dual-amn", seed=seed)
        return config if part == IDS else replace(config, epochs=self._arguments.million_epochs)

    def runs(self, part: str, pair: str, seed: int) -> list[Run]:
        """Those that share embeddings."""
        epochs = self.training(part, seed).epochs
        counts = self._arguments.time_xgboost
        if part == XGBOOST:
            if not counts:
                return []
            config = self.config(part, TIMED_BATCHES, seed)
            on = self.xgboost_device
            return [Run(part, pair, "cmcs", config, epochs, count, on) for count in counts]
        batches = self._arguments.batches if part == IDS else self._arguments.million_batches
        return [
            Run(part, pair, sampler, self.config(part, count, seed), epochs)
            for sampler in self.samplers
            for count in batches
        ]

    def takes(self, record: Record) -> bool:
        """Whether a record was made with the settings that the command line asks for."""
        part, seed = record["part"], record["seed"]
        config = recipe(record["sampler"], self.config(part, record["num_batches"], seed))
        return bool(
            record["config"] == config and record["epochs"] == self.training(part, seed).epochs
        )


def measure_ids(plan: Plan, records: Records, arguments: argparse.Namespace) -> None:
    """Part A: IDS15K."""
    device = torch.device(arguments.device)
    for pair in arguments.pairs:
        for seed in arguments.seeds:
            missing = [run for run in plan.runs(IDS, pair, seed) if not records.has(run)]
            if not missing:
                continue
            benchmark = clusterea.load(arguments.data / pair, seeds_share=SEEDS_SHARE)
            kept = arguments.embeddings and arguments.embeddings / f"{pair}-{seed}"
            embeddings = embeddings_of(benchmark, plan.training(IDS, seed), kept, device)
            for run in missing:
                result = sampled(run, benchmark.task, embeddings, device, {})
                records.add(record_of(run, benchmark, result, device))


def measure_million(plan: Plan, records: Records, arguments: argparse.Namespace) -> None:
    """Part B: a million-entity pair."""
    device, seed = torch.device(arguments.device), MILLION_SEED
    runs, timed = (
        [run for run in plan.runs(part, plan.million, seed) if not records.has(run)]
        for part in (MILLION, XGBOOST)
    )
    if not (runs or timed):
        return
    start = time.perf_counter()
    is_generated = plan.shape in SHAPES
    benchmark = (
        generated(SHAPES[plan.shape])
        if is_generated
        else clusterea.load(Path(arguments.million), seeds_share=SEEDS_SHARE)
    )
    verb = "generated" if is_generated else "read"
    print(f"{verb} {plan.million} in {time.perf_counter() - start:.1f} s", flush=True)
    with beside(benchmark.task, runs) as at_work:
        kept = arguments.embeddings and arguments.embeddings / f"{plan.million}-{seed}"
        embeddings = embeddings_of(benchmark, plan.training(MILLION, seed), kept, device)
        # What is ready first comes first: METIS-CPS is still at work.
        for run in sorted(runs, key=lambda run: (run in at_work.samples, "iscs" in run.sampler)):
            if run in at_work.samples:
                result, where = at_work.samples[run].result(), torch.device("cpu")
            else:
                result, where = (
                    sampled(run, benchmark.task, embeddings, device, at_work.cuts),
                    device,
                )
            records.add(record_of(run, benchmark, result, where))
    for run in timed:
        where = torch.device(run.on or "cpu")
        task = replace(benchmark.task, seeds=benchmark.task.seeds[: run.seeds])
        result = sampled(run, task, embeddings, where, {})
        records.add(record_of(run, benchmark, result, where))


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the figure at one K: its runs over seeds and directions."""

    pair: str
    num_batches: int
    name: str
    runs: list[Record]

    def by_seed(self, *path: str) -> list[float]:
        """A figure for each seed, the mean of both directions where there are two."""
        values: dict[int, list[float]] = {}
        for run in self.runs:
            value: Any = run
            for key in path:
                value = value[key]
            values.setdefault(run["seed"], []).append(value or 0.0)
        return [mean(each) for each in values.values()]

    def mean(self, *path: str) -> float:
        return mean(self.by_seed(*path))

    def largest(self, field: str) -> list[Any]:
        """Of each side, over seeds and directions."""
        return [max(run[field][side] for run in self.runs) for side in (0, 1)]

    def seconds(self) -> tuple[float, float]:
        """Without METIS's first cut, and with it."""
        own = self.mean("seconds")
        return own, own + self.mean("metis_seconds")

    def is_bounded(self) -> bool:
        """Whether no mini-batch is over twice the mean, rounded up to a whole entity."""
        return all(
            most <= math.ceil(MOST_SHARE * count / run["effective_batches"])
            for run in self.runs
            for most, count in zip(run["largest"], run["entities"], strict=True)
        )


def rows_of(records: Sequence[Record], part: str) -> list[Row]:
    """The rows that have runs, by pair, K and sampler."""
    chosen = [record for record in records if record["part"] == part]
    rows = [
        Row(pair, count, name, [r for r in chosen if _matches(r, pair, count, samplers)])
        for pair in dict.fromkeys(record["pair"] for record in chosen)
        for count in sorted({r["num_batches"] for r in chosen if r["pair"] == pair})
        for name, samplers in ROWS.items()
    ]
    return [row for row in rows if row.runs]


def _matches(record: Record, pair: str, num_batches: int, samplers: tuple[str, ...]) -> bool:
    return (
        record["pair"] == pair
        and record["num_batches"] == num_batches
        and record["sampler"] in samplers
    )


def table(rows: Sequence[Row]) -> str:
    """Markdown: a table for each pair."""
    lines: list[str] = []
    for pair in dict.fromkeys(row.pair for row in rows):
        mine = [row for row in rows if row.pair == pair]
        seeds = sorted({run["seed"] for row in mine for run in row.runs})
        devices = ", ".join(sorted({run["device"] for row in mine for run in row.runs}))
        lines += [
            "",
            f"**{pair}** (seeds {', '.join(map(str, seeds))}; {devices})",
            "",
            "| K | sampler | test links | all links | macro | largest mini-batch | × mean "
            "| seconds | METIS |",
            "|--:|---|--:|--:|--:|--:|--:|--:|--:|",
        ]
        for row in mine:
            shares = [f"{row.mean('overlap', key):.1%}" for key in ("test", "all", "macro")]
            effective = sorted({run["effective_batches"] for run in row.runs})
            count = f"{row.num_batches}"
            if effective != [row.num_batches]:
                count += f" → {effective[0]}" + (f" to {effective[-1]}" if effective[1:] else "")
            own, whole = row.seconds()
            cells = [
                count,
                LOOKS[row.name].label,
                *shares,
                " × ".join(f"{most:,}" for most in row.largest("largest")),
                f"{max(row.largest('largest_over_mean')):.2f}",
                duration(own),
                duration(whole - own) if any(run["metis_seconds"] for run in row.runs) else "",
            ]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def duration(seconds: float) -> str:
    """Two decimals where they tell something."""
    return f"{seconds:.1f}" if seconds >= 10 else f"{seconds:.2f}"


def checks(ids: Sequence[Row], million: Sequence[Row]) -> list[str]:
    """Each bar with what was measured: met, missed, or not run."""
    found = {(row.pair, row.num_batches, row.name): row for row in (*ids, *million)}
    lines: list[str] = []

    def check(label: str, met: bool | None, measured: str = "") -> None:
        verdict = "not run" if met is None else "met" if met else "missed"
        lines.append(f"- {verdict}: {label}" + (f" ({measured})" if measured else ""))

    for pair, bars in BARS.items():
        rival = found.get((pair, BARS_BATCHES, "metis-cps"))
        for name, bar in bars.items():
            row = found.get((pair, BARS_BATCHES, name))
            where = f"{pair}, K = {BARS_BATCHES}, {LOOKS[name].label}"
            if row is None:
                check(f"{where} at least {bar:.0%} of test links", None)
                continue
            ours = row.by_seed("overlap", "test")
            spread = f"{mean(ours):.1%}, {len(ours)} seeds, {min(ours):.1%} to {max(ours):.1%}"
            check(f"{where} at least {bar:.0%} of test links", mean(ours) >= bar, spread)
            theirs = rival.mean("overlap", "test") if rival else None
            check(
                f"{where} above METIS-CPS",
                None if theirs is None else mean(ours) > theirs,
                "" if theirs is None else f"{mean(ours):.1%} and {theirs:.1%}",
            )
    for pair in dict.fromkeys(row.pair for row in (*ids, *million)):
        mine = [row for row in (*ids, *million) if row.pair == pair]
        chance = [row for row in mine if row.name == "vps"]
        for kind, base in (("test", 0.0), ("all", SEEDS_SHARE)):
            off = [
                abs(row.mean("overlap", kind) - base - (1 - base) / row.num_batches)
                for row in chance
            ]
            rule = f"{base:g} + {1 - base:g}/K" if base else "1/K"
            label = f"{pair}, VPS within {NEAR:.0%} of {rule} on {kind} links at every K"
            check(label, max(off) <= NEAR if off else None, f"{max(off):.2%}" if off else "")
        over = [row for row in mine if not row.is_bounded()]
        names = ", ".join(f"{LOOKS[row.name].label} at K = {row.num_batches}" for row in over)
        worst = max(max(row.largest("largest_over_mean")) for row in mine)
        label = f"{pair}, no mini-batch over {MOST_SHARE} times the mean"
        check(label, not over, f"{worst:.2f}" + (f": {names}" if names else ""))
    timed = [row for row in million if row.num_batches == TIMED_BATCHES]
    for row in [*ids, *timed]:
        # METIS-CPS is METIS twice, of which only the first can run beside training.
        slowest = max(row.runs, key=lambda run: run["seconds"])
        if row.name != "metis-cps" and (row in timed or slowest["seconds"] > MOST_SECONDS):
            check(
                f"{row.pair}, K = {row.num_batches}, {LOOKS[row.name].label} "
                f"in at most {MOST_SECONDS} s",
                slowest["seconds"] <= MOST_SECONDS,
                f"{slowest['seconds']:.1f} s on {slowest['device']}",
            )
    own = [run["seconds"] for row in ids for run in row.runs if row.name != "metis-cps"]
    if own and max(own) <= MOST_SECONDS:
        check(f"IDS15K, each sampler in at most {MOST_SECONDS} s", True, f"{max(own):.1f} s")
    return lines


def xgboost_lines(records: Sequence[Record]) -> list[str]:
    """Seconds of CMCS with XGBoost; beyond the seeds that were timed, along a straight line."""
    lines: list[str] = []
    chosen = [record for record in records if record["part"] == XGBOOST]
    for pair, device in dict.fromkeys((r["pair"], r["device"]) for r in chosen):
        mine = [r for r in chosen if (r["pair"], r["device"]) == (pair, device)]
        points = sorted((min(r["seeds_taken"], r["seeds"]), r["seconds"]) for r in mine)
        where = f"{pair}, K = {mine[0]['num_batches']}, CMCS with XGBoost on {device}"
        lines += [f"- {where}: {seconds:.1f} s with {seeds:,} seeds" for seeds, seconds in points]
        whole = mine[0]["seeds"]
        counts = [seeds for seeds, _ in points]
        if len(set(counts)) > 1 and counts[-1] < whole:
            slope, start = np.polyfit(counts, [seconds for _, seconds in points], 1)
            lines.append(
                f"- {where}: {start + slope * whole:.0f} s with {whole:,} seeds, "
                "extrapolated as linear in the seeds, not measured"
            )
    return lines


def plot(path: Path, ids: Sequence[Row], million: Sequence[Row]) -> None:
    """A column of panels for each pair, and one for the seconds of each million-entity pair."""

    def shares(rows: Sequence[Row], kind: str) -> dict[str, list[Point]]:
        lines: dict[str, list[Point]] = {}
        for row in rows:
            values = [100 * each for each in row.by_seed("overlap", kind)]
            point = Point(row.num_batches, mean(values), min(values), max(values))
            lines.setdefault(row.name, []).append(point)
        return lines

    def seconds(rows: Sequence[Row], which: int) -> dict[str, list[Point]]:
        lines: dict[str, list[Point]] = {}
        for row in rows:
            value = row.seconds()[which]
            lines.setdefault(row.name, []).append(Point(row.num_batches, value, value, value))
        return lines

    columns: list[list[Panel]] = []
    batches = "mini-batches K"
    for rows in (ids, million):
        for pair in dict.fromkeys(row.pair for row in rows):
            mine = [row for row in rows if row.pair == pair]
            columns.append(
                [
                    Panel(title(pair), batches, f"overlap, {kind} links (%)", lines, (0, 100))
                    for kind in ("all", "test")
                    if (lines := shares(mine, kind))
                ]
            )
            if rows is million:
                every = [value for row in mine for value in row.seconds()]
                limits = min(every) / 1.5, max(every) * 1.5
                columns.append(
                    [
                        Panel(title(pair), batches, label, seconds(mine, which), limits, True)
                        for which, label in enumerate(
                            ("seconds, first cut apart", "seconds in all")
                        )
                    ]
                )
    if not columns:
        raise InputError("--plot needs records. Got none with these settings.")
    small_multiples(path, columns, LOOKS)


def title(pair: str) -> str:
    """`ids15k-en-fr` as IDS15K EN-FR."""
    name = pair.removesuffix("-generated")
    text = name.upper().replace("-", " ", 1)
    return text if name == pair else f"{text}, generated"


def main() -> None:
    """Measures what is missing, prints the tables and the checks, and draws the plot."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder of the IDS15K pairs")
    parser.add_argument("--pairs", nargs="*", default=PAIRS)
    parser.add_argument("--batches", nargs="*", type=int, default=[5, 10, 15, 20, 25])
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--samplers", nargs="*", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--classifier", default="softmax", help="of CMCS: softmax or xgboost")
    parser.add_argument("--set", nargs="*", default=[], dest="settings", metavar="FIELD=VALUE")
    parser.add_argument(
        "--million", default="", help="generate, the name of a shape to generate, or a folder"
    )
    parser.add_argument("--million-batches", nargs="*", type=int, default=[10, 20, 30, 40, 50])
    parser.add_argument("--million-epochs", type=int, default=2)
    parser.add_argument(
        "--time-xgboost",
        nargs="*",
        type=int,
        default=[],
        metavar="N",
        help="time CMCS with XGBoost at the million on the first N seeds, K = 30; two or more N "
        "are extrapolated to all seeds",
    )
    parser.add_argument("--xgboost-device", help="where --time-xgboost computes, if elsewhere")
    parser.add_argument(
        "--embeddings", type=Path, help="runs of `clusterea train`, named PAIR-SEED, to use"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="keep every run's figures here, as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg|png")
    parser.add_argument("--only-plot", action="store_true", help="measure nothing: --out has it")
    arguments = parser.parse_args()
    plan, records = Plan(arguments), Records(arguments.out)
    if not arguments.only_plot:
        if not (arguments.data or arguments.million):
            parser.error("give --data, --million or --only-plot")
        warm_up(plan.samplers, plan.config(IDS, 2, 0), torch.device(arguments.device))
        if arguments.data:
            measure_ids(plan, records, arguments)
        if arguments.million:
            measure_million(plan, records, arguments)
    chosen = [record for record in records.all if plan.takes(record)]
    if len(chosen) < len(records.all):
        print(f"{len(records.all) - len(chosen)} records with other settings are left out")
    ids, million = rows_of(chosen, IDS), rows_of(chosen, MILLION)
    print(table([*ids, *million]), "", *checks(ids, million), *xgboost_lines(chosen), sep="\n")
    if arguments.plot:
        plot(arguments.plot, ids, million)


if __name__ == "__main__":
    main()
