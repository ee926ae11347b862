"""The paper's tables 1 to 3 and figures 3 and 4: our rows beside its rows.

    .venv/bin/python benchmarks/reproduce.py --data FOLDER --rows ClusterEA-D --pairs ids15k-en-fr
    .venv/bin/python benchmarks/reproduce.py --overlap --data FOLDER --batches 5 10 15 20 25
    .venv/bin/python benchmarks/reproduce.py --overlap --pairs dbp1m-en-fr-generated --seeds 0
        --batches 10 30 50 --set training.epochs=2
    .venv/bin/python benchmarks/reproduce.py --write [--plot docs/images/sampler_overlap.svg]

A run that has a record is skipped, unless `--again`. Pairs: see `common.read_pair`. All rows use
the `paper` preset; `--set` changes it. Rows of one pair and seed share training and mini-batches:
each record has the full cost, up to the similarity, without METIS, which `align` runs beside
training. `--write` makes `docs/results.md`, `docs/results.tsv`, the tables in other documents
(`results_page.TABLES_IN`) and the plot of `docs/few-seeds.md` from all records.

`oracle filter` is no result. It removes from each mini-batch, with the *test* links, the entities
whose counterpart is in another one. The authors' release does that before Sinkhorn.

`--overlap` is figure 3: the share of links that each sampler keeps in one mini-batch. ISCS and
METIS-CPS are the means of both directions. Bars, with three seeds at K = 5 on IDS15K EN-FR and
EN-DE: CMCS 90 and 93 %, ISCS 85 and 89 % of the test links, VPS near 1/K; no mini-batch over twice
the mean; each sampler but METIS-CPS in 30 s, also at DBP1M's size on one H200-class GPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from clusterea import Benchmark, Pair, Partition, Similarity
from clusterea.config import Config, preset, training_config, with_settings
from clusterea.evaluation import evaluate
from clusterea.evaluation.overlap import overlap
from clusterea.pipeline.largeea import largeea
from clusterea.pipeline.memory import largest_batch, limit_memory
from clusterea.sharded import fuse
from clusterea.sizes import parse_size
from clusterea.training import train
from clusterea.types import IntArray
from common import (
    DEVICE,
    RESULTS,
    Record,
    TimedCut,
    commit,
    costs,
    device_name,
    flat_metrics,
    put_record,
    read_pair,
    read_records,
    timed,
)
from results_page import OVERLAP, overlap_plot, overlap_rows, write

ROOT = Path(__file__).parents[1]
IDENTITY = ("row", "pair", "seed", "settings", "memory", "on")
OVERLAP_IDENTITY = ("pair", "sampler", "num_batches", "seed", "classifier", "seeds_taken")
IDS = ("ids15k-en-fr", "ids15k-en-de")


@dataclass(frozen=True, slots=True)
class Row:
    """How a row of the paper is made."""

    model: str = "dual-amn"
    samplers: tuple[str, ...] = ("cmcs", "iscs")
    settings: tuple[str, ...] = ()
    full_graph: bool = False
    oracle: bool = False  # mini-batches are filtered by the test links
    largeea: bool = False

    def config(self, size: int, seed: int, settings: Sequence[str]) -> Config:
        """The paper's settings with the row's changes."""
        config = preset(
            "paper",
            size,
            model=self.model,
            samplers=self.samplers,
            seed=seed,
            settings=[*self.settings, *settings],
        )
        if not self.full_graph:
            return config
        own = [each for each in settings if each.startswith("training.")]
        full = with_settings(training_config(self.model, full_graph=True, seed=seed), own)
        return replace(config, training=full)


# In the order of running
ROWS: dict[str, Row] = {
    "ClusterEA-D": Row(),
    "Dual-AMN-S": Row(samplers=()),
    "without Sp-CSLS": Row(settings=("fusion.csls=false",)),
    "without global similarity": Row(settings=("fusion.views=local",)),
    "without Sinkhorn": Row(settings=("fusion.views=local-cosine,global",)),
    "without CMCS": Row(samplers=("iscs",)),
    "without ISCS": Row(samplers=("cmcs",)),
    "oracle filter": Row(oracle=True),
    "ClusterEA-R": Row("rrea"),
    "RREA-S": Row("rrea", samplers=()),
    "ClusterEA-G": Row("gcn-align"),
    "GCN-Align-S": Row("gcn-align", samplers=()),
    "LargeEA-D": Row(samplers=("metis-cps",), largeea=True),
    "LargeEA-R": Row("rrea", samplers=("metis-cps",), largeea=True),
    "LargeEA-G": Row("gcn-align", samplers=("metis-cps",), largeea=True),
    "Dual-AMN": Row(samplers=(), full_graph=True),
    "RREA": Row("rrea", samplers=(), full_graph=True),
    "GCN-Align": Row("gcn-align", samplers=(), full_graph=True),
}


class Stages:
    """The stages of one pair and seed, each run once for all rows that share it."""

    def __init__(self, benchmark: Benchmark, device: torch.device) -> None:
        self.benchmark, self.device = benchmark, device
        self._made: dict[str, tuple[Any, Record]] = {}
        self._cut = TimedCut()

    def embeddings(self, config: Config) -> tuple[Pair[Tensor], Record]:
        """Those of the config's encoder."""
        task, training = self.benchmark.task, config.training
        if str(training) not in self._made:
            made = timed(self.device, lambda: train(task, training, device=self.device))
            self._made[str(training)] = made
        embeddings, cost = self._made[str(training)]
        return embeddings, cost

    def partition(
        self, name: str, config: Config, num_seeds: int | None = None
    ) -> tuple[Partition, Record]:
        """Mini-batches by a sampler."""
        task, sampling = self.benchmark.task, config.sampling
        if num_seeds:
            task = task.with_seeds(task.seeds[:num_seeds])
        key = f"{name} {num_seeds} {sampling} {config.training}"
        if key not in self._made:
            embeddings, _ = self.embeddings(config)
            self._made[key] = self._cut.sampled(name, task, embeddings, sampling, self.device)
        partition, cost = self._made[key]
        return partition, cost

    def similarity(self, row: Row, config: Config) -> tuple[Similarity, list[Record]]:
        """What a row makes of the pair, and the costs of its stages."""
        task = self.benchmark.task
        if row.largeea:
            made, cost = timed(
                self.device,
                lambda: largeea(task, config.training, config.sampling, config.fusion, self.device),
            )
            return made, [stage("all", cost)]
        embeddings, cost = self.embeddings(config)
        stages = [stage("training", cost)]
        partitions = []
        for name in config.samplers:
            partition, cost = self.partition(name, config)
            if row.oracle:
                partition = filtered(partition, self.benchmark.test_links)
            partitions.append(partition)
            stages.append(stage(f"sampling: {name}", cost))
        fused, cost = timed(
            self.device,
            lambda: fuse(
                [embeddings],
                partitions,
                task.seeds,
                task.tie_keys,
                config.fusion,
                device=self.device,
            ),
        )
        return fused, [*stages, stage("fusion", cost)]


def stage(name: str, cost: Record) -> Record:
    """A cost in the form of `run.json`."""
    peaks = {f"peak_{where}": cost[where] for where in ("host_bytes", "gpu_bytes")}
    return {"stage": name, "seconds": cost["seconds"], **peaks}


def filtered(partition: Partition, links: IntArray) -> Partition:
    """Keeps in a mini-batch only entities whose true counterpart is in it too: an oracle.

    All others go to two mini-batches that have one side only, which the fusion ignores.
    """
    source, target = partition.labels
    ends = torch.from_numpy(links.copy())
    together = ends[source[ends[:, 0]] == target[ends[:, 1]]]

    def kept(labels: Tensor, entities: Tensor, nowhere: int) -> Tensor:
        result = torch.full_like(labels, nowhere)
        result[entities] = labels[entities]
        return result

    count = partition.num_batches
    labels = Pair(kept(source, together[:, 0], count), kept(target, together[:, 1], count + 1))
    return Partition(labels, count + 2)


# ---- runs


def run_rows(arguments: argparse.Namespace, pair: str, stages: Stages, seed: int) -> None:
    """Runs and records the rows that were asked for."""
    task, device = stages.benchmark.task, stages.device
    size = max(graph.num_entities for graph in task.graphs)
    done = {str([each.get(n) for n in IDENTITY]) for each in read_records(arguments.out)}
    for name in arguments.rows:
        row = ROWS[name]
        memory = arguments.memory if row.samplers else None
        own = {"row": name, "pair": pair, "seed": seed, "settings": arguments.settings}
        own |= {"memory": memory, "on": device.type}
        if not arguments.again and str(list(own.values())) in done:
            continue
        config = row.config(size, seed, arguments.settings)
        if memory:
            bound = largest_batch(parse_size(memory), device, config, task)
            bounded = f"sampling.max_batch={bound}"
            config = row.config(size, seed, [*arguments.settings, bounded])
        limit_memory(device, parse_size(memory) if memory else None)
        similarity, found = stages.similarity(row, config)
        metrics = evaluate(similarity.to(device), stages.benchmark.test_links, task.seeds)
        record = own | {
            "seconds": sum(cost["seconds"] for cost in found),
            **costs(found),
            "metrics": flat_metrics(metrics.to_dict()),
            "device": device_name(device),
            "commit": commit(),
        }
        put_record(arguments.out, record, IDENTITY)
        hits, tenth = (100 * record["metrics"][each] for each in ("hits@1", "hits@10"))
        said = f"H@1 {hits:.1f}, H@10 {tenth:.1f}, {record['seconds']:.1f} s"
        print(f"{name} {pair} {seed}: {said}", flush=True)


def run_overlap(arguments: argparse.Namespace, pair: str, stages: Stages, seed: int) -> None:
    """Records what each sampler keeps together, at each K."""
    size = max(graph.num_entities for graph in stages.benchmark.task.graphs)
    config = Row().config(size, seed, ["sampling.classifier=softmax", *arguments.settings])
    every = [each for row in OVERLAP.values() for each in row]
    samplers = ["cmcs"] if arguments.take else every
    for count in arguments.batches:
        sampling = replace(config.sampling, num_batches=count, max_batch=None)
        own = replace(config, sampling=sampling)
        for name in samplers:
            partition, cost = stages.partition(name, own, arguments.take)
            share, largest = overlap(partition, stages.benchmark), partition.sizes().map(max)
            entities = partition.labels.map(len)
            record = {
                "pair": pair,
                "sampler": name,
                "num_batches": count,
                "seed": seed,
                "classifier": sampling.classifier if name == "cmcs" else None,
                "seeds_taken": arguments.take,
                **{kind: getattr(share, kind) for kind in ("test", "all", "macro")},
                "effective_batches": partition.num_batches,
                "largest": list(largest),
                "over_mean": max(
                    most * partition.num_batches / whole
                    for most, whole in zip(largest, entities, strict=True)
                ),
                "seconds": cost["seconds"],
                "metis_seconds": cost["metis_seconds"],
                "gpu_bytes": cost["gpu_bytes"],
                "epochs": config.training.epochs,
                "device": device_name(stages.device),
            }
            put_record(arguments.overlap_out, record, OVERLAP_IDENTITY)
            said = f"{share.test:.1%} of test links, {cost['seconds']:.1f} s"
            print(f"{pair} {name} K={count} seed {seed}: {said}", flush=True)


def overlap_bars(records: Sequence[Record]) -> Iterator[str]:
    """Each bar of figure 3 with what was measured."""
    least = {IDS[0]: {"cmcs": 0.90, "iscs": 0.85}, IDS[1]: {"cmcs": 0.93, "iscs": 0.89}}
    for pair, name, count, runs in overlap_rows(records):
        share = mean(each["test"] for each in runs)
        bars = {"over twice the mean": max(each["over_mean"] for each in runs) <= 2.001}
        if name == "vps":
            bars["near 1/K"] = abs(share - 1 / count) <= 0.02
        if name != "metis-cps":
            bars["30 s"] = max(each["seconds"] for each in runs) <= 30
        if count == 5 and name in least.get(pair, {}):
            bars[f"{least[pair][name]:.0%}"] = share >= least[pair][name]
        missed = [bar for bar, met in bars.items() if not met]
        verdict = f"MISSED: {', '.join(missed)}" if missed else f"{len(bars)} bars met"
        yield f"{pair}, {name}, K = {count}: {share:.1%} of test links, {verdict}"


def main() -> None:
    """Runs what was asked for, or writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder of the pairs")
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=ROWS, metavar="ROW")
    parser.add_argument("--pairs", nargs="*", default=list(IDS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--set", nargs="*", default=[], dest="settings", metavar="STAGE.FIELD=V")
    parser.add_argument("--memory", metavar="SIZE", help="limit rows with samplers, as 20GiB")
    parser.add_argument("--again", action="store_true", help="also rows that have a record")
    parser.add_argument("--overlap", action="store_true", help="figure 3 instead of rows")
    parser.add_argument("--batches", nargs="*", type=int, default=[5], help="K, of --overlap")
    parser.add_argument("--take", type=int, help="time CMCS alone, with the first N seeds")
    parser.add_argument("--device", default=DEVICE, choices=("cpu", "cuda"))
    parser.add_argument("--out", type=Path, default=RESULTS / "reproduce.jsonl")
    parser.add_argument("--overlap-out", type=Path, default=RESULTS / "overlap.jsonl")
    parser.add_argument(
        "--write",
        nargs="?",
        type=Path,
        const=ROOT,
        metavar="FOLDER",
        help="run nothing: write the documents",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE.svg|png", help="run nothing: figure 3")
    arguments = parser.parse_args()
    if arguments.write:
        write(arguments.write)
    if arguments.plot:
        overlap_plot(arguments.plot, read_records(arguments.overlap_out))
    if arguments.write or arguments.plot:
        return
    work = run_overlap if arguments.overlap else run_rows
    for pair in arguments.pairs:
        benchmark = read_pair(arguments.data, pair)
        for seed in arguments.seeds:
            work(arguments, pair, Stages(benchmark, torch.device(arguments.device)), seed)
    if arguments.overlap:
        print("\n".join(overlap_bars(read_records(arguments.overlap_out))))


if __name__ == "__main__":
    main()
