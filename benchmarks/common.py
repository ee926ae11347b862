"""What the benchmarks share: pairs, costs, where a figure comes from, and files of records.

A record is one measurement: a JSON object on one line of a `.jsonl` file.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import resource
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

import clusterea
from clusterea.config import SamplingConfig
from clusterea.data.synthetic import SHAPES, LabelShape, PairShape, generate
from clusterea.samplers import Resources, metis_cut, sample
from clusterea.types import AlignmentTask, Benchmark, IntArray, KnowledgeGraph, Pair, Partition

RESULTS = Path(__file__).parent / "results"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SEEDS_SHARE = 0.3  # where the data does not say
GENERATED = "-generated"  # suffix of a pair that is generated with the counts of a real one
DIGITS = 5  # significant digits of a float in a record

Record = dict[str, Any]
Value = TypeVar("Value")


# ---- pairs


def generated(shape: PairShape, labels: LabelShape | None = None) -> Benchmark:
    """A generated pair; the first 30 % of its links are seeds, the others test links."""
    whole = generate(shape, 0, labels)
    links = whole.task.seeds
    count = int(SEEDS_SHARE * len(links))
    return replace(whole, task=whole.task.with_seeds(links[:count]), test_links=links[count:])


def scaled(entities: int) -> PairShape:
    """The shape of DBP1M's EN-FR with another number of entities (both sides together)."""
    like = SHAPES["dbp1m-en-fr"]
    ratio = entities / sum(like.entities)
    return replace(
        like,
        entities=like.entities.map(lambda n: round(n * ratio)),
        triples=like.triples.map(lambda n: round(n * ratio)),
    )


def folder_of(data: Path, pair: str) -> tuple[Path, float | None]:
    """The folder of a pair, and its share or number of seeds, if its name has one.

    `contea-fr-en-10` has 10 % seeds, `dbp15k-zh-en-20s` has 20 seeds.
    """
    named = re.fullmatch(r"(.+)-(\d+)(s?)", pair)
    if named is None or (data / pair).is_dir():
        return data / pair, None
    number = int(named[2])
    return data / named[1], number if named[3] else number / 100


def read_pair(data: Path | None, pair: str, seed: int = 0, names: str | None = None) -> Benchmark:
    """A pair by name: generated, with its own split, or with a share or number of random seeds.

    DBP15K has its own split. On IDS and DBP1M, the seeds are the first links of the file. If the
    name has a share or number (`folder_of`), and on all other pairs, the seeds are random links,
    which depend on `seed`. `names` are those of `clusterea.load`.
    """
    if pair.endswith(GENERATED):
        return generated(SHAPES[pair.removesuffix(GENERATED)])
    if data is None:
        raise SystemExit(f"{pair}: --data must name the folder that holds it.")
    folder, asked = folder_of(data, pair)
    if asked is None and pair.startswith("dbp15k"):
        return clusterea.load(folder, names=names)
    if asked is None and pair.startswith(("ids", "dbp1m")):
        return clusterea.load(folder, split="first", seeds_share=SEEDS_SHARE, names=names)
    whole = clusterea.load(folder, names=names)
    links = np.concatenate([whole.task.seeds, whole.test_links])
    links = links[np.random.default_rng(seed).permutation(len(links))]
    asked = SEEDS_SHARE if asked is None else asked
    count = round(asked * len(links)) if asked < 1 else int(asked)
    return replace(whole, task=whole.task.with_seeds(links[:count]), test_links=links[count:])


# ---- costs


def synchronize(device: torch.device) -> None:
    """Waits until the device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(device: torch.device, work: Callable[[], Value]) -> tuple[Value, Record]:
    """The result of `work`, with its seconds and peak memory.

    `host_bytes` is the peak of the process so far; `gpu_bytes` that of this work alone.
    """
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    synchronize(device)
    start = time.perf_counter()
    value = work()
    synchronize(device)
    seconds = time.perf_counter() - start
    gpu = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
    return value, {"seconds": seconds, "host_bytes": host_peak(), "gpu_bytes": gpu}


def host_peak() -> int:
    """The most memory that this process has held, in bytes (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class TimedCut:
    """METIS for samplers; a graph that was cut before is not cut again.

    `align` runs METIS beside training, so benchmarks count its time apart.
    """

    def __init__(self) -> None:
        self._cuts: dict[tuple[int, int, int], tuple[IntArray, float]] = {}
        self.waited = 0.0  # seconds of the sampler that went into METIS
        self.seconds = 0.0  # METIS's own, also where they passed before

    def __call__(self, graph: KnowledgeGraph, num_parts: int, seed: int) -> IntArray:
        key, start = (id(graph), num_parts, seed), time.perf_counter()
        if key not in self._cuts:
            parts = metis_cut(graph, num_parts, seed)
            self._cuts[key] = parts, time.perf_counter() - start
        parts, seconds = self._cuts[key]
        self.seconds += seconds
        self.waited += time.perf_counter() - start
        return parts

    def sampled(
        self,
        name: str,
        task: AlignmentTask,
        embeddings: Pair[Tensor],
        config: SamplingConfig,
        device: torch.device,
    ) -> tuple[Partition, Record]:
        """Mini-batches by a sampler and their cost; METIS's first cut is not in `seconds`."""
        self.waited = self.seconds = 0.0
        resources = Resources(device, self)
        partition, cost = timed(device, lambda: sample(name, task, embeddings, config, resources))
        cost["seconds"] -= self.waited
        return partition, cost | {"metis_seconds": self.seconds or None}


def costs(stages: Iterable[Mapping[str, Any]]) -> Record:
    """Seconds by stage, rounds and directions together, and the largest peaks.

    The stages are those of `AlignmentResult.timings` or `run.json`, as dictionaries.
    """
    every = list(stages)
    seconds: dict[str, float] = {}
    for stage in every:
        name = re.sub(r"(, round \d+)?(, fit \d+)?$", "", stage["stage"]).removesuffix("-reverse")
        seconds[name] = seconds.get(name, 0.0) + stage["seconds"]
    gpu = max((stage["peak_gpu_bytes"] or 0 for stage in every), default=0)
    host = max((stage["peak_host_bytes"] for stage in every), default=0)
    return {"stages": seconds, "host_bytes": host, "gpu_bytes": gpu or None}


def flat_metrics(metrics: Mapping[str, Any]) -> Record:
    """The figures of `Metrics.to_dict()` that records keep; `all_` is among all candidates."""
    found: Record = {}
    for prefix, candidates in (("", "test_candidates"), ("all_", "all_candidates")):
        ranked = metrics[candidates]
        found |= {f"{prefix}{name}": value for name, value in ranked["source_to_target"].items()}
        found[f"{prefix}reverse_hits@1"] = ranked["target_to_source"]["hits@1"]
    return found | (metrics.get("matching") or {})


def device_name(device: torch.device) -> str:
    """Its usual name. CLUSTEREA_BESIDE says how many other runs share it."""
    name = f"cpu ({platform.processor() or platform.machine()})"
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    else:
        name += f", {torch.get_num_threads()} threads"
    others = os.environ.get("CLUSTEREA_BESIDE")
    return f"{name}, beside {others} other runs" if others else name


def commit() -> str | None:
    """The commit that is checked out; CLUSTEREA_COMMIT names it outside a repository."""
    if told := os.environ.get("CLUSTEREA_COMMIT"):
        return told
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


# ---- records


def read_records(path: Path | None) -> list[Record]:
    """The records of a file; none where it is missing."""
    if path is None or not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def put_record(path: Path | None, record: Record, identity: Sequence[str]) -> None:
    """Adds a record to a file, in place of the one with the same identity fields, if any.

    The folder is locked meanwhile, so several programs may write to one file.
    """
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        records = read_records(path)
        record = rounded(record)
        own = [record.get(name) for name in identity]
        places = [i for i, each in enumerate(records) if [each.get(n) for n in identity] == own]
        if places:
            records[places[0]] = record
        else:
            records.append(record)
        partial = path.with_name(f"{path.name}.partial")
        partial.write_text("".join(json.dumps(each) + "\n" for each in records))
        partial.replace(path)
    finally:
        os.close(folder)


def rounded(value: Any) -> Any:
    """The value with floats of five significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list | tuple) else value


def field(record: Mapping[str, Any], path: str) -> Any:
    """A value by its path: `metrics.hits@1`, `stages.fusion`."""
    value: Any = record
    for name in path.split("."):
        value = value[name]
    return value


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    return [f"| {' | '.join(each)} |" for each in (head, ["---"] * len(head), *lines)]


def between_markers(text: str, name: str, lines: Sequence[str]) -> str:
    """A document with these lines between `<!-- name -->` and `<!-- /name -->`."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"the document must have {begin} and, below it, {end}.")
    return "\n".join([before + begin, "", *lines, "", end + after])
