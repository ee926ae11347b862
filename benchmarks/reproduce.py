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
the similarity. Our own presets are in the tables as `alignment_accuracy.py` has run them.

`oracle filter` is no result: it is what the authors' release does, cutting each mini-batch down
with the *test* links before Sinkhorn. It lives here alone, to show what that is worth.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar, get_args

import torch
from torch import Tensor

from clusterea.config import Config, TrainingConfig, preset, training_config, with_settings
from clusterea.config.sampling import ClassifierName
from clusterea.errors import InputError
from clusterea.evaluation import evaluate
from clusterea.pipeline import (
    Artifacts,
    Cuts,
    Known,
    choose_device,
    fuse_stage,
    measured,
    sample_stage,
    train_stage,
)
from clusterea.pipeline.largeea import METIS_CPS, largeea
from clusterea.pipeline.memory import largest_batch, limit_memory
from clusterea.sizes import parse_size
from clusterea.types import Benchmark, IntArray, Pair, Partition, Similarity
from clusterea.workspace import recipe_key, task_key
from pairs import read
from paper_tables import CLASSIFIER, DE15, FR15, SAME
from provenance import commit, device_name
from records import Record, add_record, records_of
from results_page import beyond_table, page, with_results

Value = TypeVar("Value")


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


# In the order of running
ROWS: dict[str, Run] = {
    "ClusterEA-D": Staged(),
    "Dual-AMN-S": Staged("dual-amn", samplers=()),
    "without Sp-CSLS": Staged(settings=("fusion.csls=false",)),
    "without global similarity": Staged(settings=("fusion.global_similarity=false",)),
    "without Sinkhorn": Staged(settings=("fusion.sinkhorn=false",)),
    "without CMCS": Staged(samplers=("iscs",)),
    "without ISCS": Staged(samplers=("cmcs",)),
    "without Dual-AMN": Staged("gcn-align"),
    "oracle filter": Staged(oracle=True),
    "ClusterEA-R": Staged("rrea"),
    "RREA-S": Staged("rrea", samplers=()),
    "ClusterEA-G": Staged("gcn-align"),
    "GCN-Align-S": Staged("gcn-align", samplers=()),
    "LargeEA-D": LargeEA("dual-amn"),
    "LargeEA-R": LargeEA("rrea"),
    "LargeEA-G": LargeEA("gcn-align"),
    "Dual-AMN": Staged("dual-amn", samplers=(), full_graph=True),
    "RREA": Staged("rrea", samplers=(), full_graph=True),
    "GCN-Align": Staged("gcn-align", samplers=(), full_graph=True),
}


# ---- runs


def identity(row: str, pair: str, seed: int, arguments: argparse.Namespace) -> Record:
    """What tells a row's records from each other."""
    samplers = ROWS[row].samplers
    return {
        "pair": pair,
        "seed": seed,
        "settings": arguments.settings,
        "classifier": arguments.classifier if "cmcs" in samplers else None,
        "memory": arguments.memory if samplers else None,
    }


def figures(row: str, asked: Asked, memo: Memo) -> Record:
    """The figures of one run."""
    made = ROWS[row](asked, memo)
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


def hardware(device: torch.device) -> str:
    """What it ran on, in words."""
    name = device_name(device)
    return name if device.type == "cuda" else f"{torch.get_num_threads()} threads of {name}"


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
                memory = known["memory"]
                limit_memory(asked.device, parse_size(memory) if memory else None)
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
    runs = [ROWS[row] for row in rows]
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
        arguments.readme.write_text(with_results(text, beyond_table(arguments.results)))
    if arguments.write is None and arguments.readme is None:
        run_all(arguments)


if __name__ == "__main__":
    main()
