"""Speed and memory of the parts, at DBP1M's size.

    .venv/bin/python benchmarks/speed.py PART … [--size NAME|ENTITIES] [--device cuda] [--out FILE]

Parts and their bars, on one H200-class GPU unless said otherwise:

- `read`: a TSV pair of 10 M triples in 40 s and 8 GiB, 3 M lines of N-Triples in 30 s (two cores)
- `generate`: generate and write the pair
- `names`: two million names to vectors in 90 s, with 2 GiB beyond the vectors (two cores)
- `train`: a step of Dual-AMN-S in 30 ms, training in 16 GB, inference in 10 s
- `stages`: CMCS and ISCS, one direction, in 30 s each; the fusion in 120 s and 20 GB; matching and
  evaluation in 5 s
- `sinkhorn`: 100 rounds of 62,600 x 45,500 in 1 s with one copy of the matrix (11.4 GB)
- `neighbors`: the 50 nearest of 1.88 M x 1.37 M x 768, both directions, in 50 s and 18 GB; a sample
  is checked by brute force; `--approximate N` also searches N others a row and gives the recall
- `evaluate`: 731 K test links and 80 cells a row in 5 s
- `recall --data FOLDER --pair NAME`: the share of the nearest neighbors that the preset `fast`
  finds, where its search is approximate: over 500,000 entities, on a CPU; on a GPU with
  `--set fusion.search_exact=0`, and there at least 97 %
- `busy [--data FOLDER] [--pair NAME] [--preset NAME]`: `clusterea align` beside two processes that
  never wait, in at most 2.5 times its time alone (two cores); `GOMP_SPINCOUNT=300000` in the
  environment gives the figures of threads that spin
- `start`: `clusterea --version` and `clusterea --help` in 0.3 s each (two cores)

`--size` is a shape's name (`demo`) or a number of entities; `--scale` shrinks `names`, `sinkhorn`,
`neighbors` and `evaluate`. A record replaces the one with the same part, size and device.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from torch import Tensor

import clusterea
from clusterea import AlignmentTask, Pair, Similarity
from clusterea.config import FusionConfig, preset, training_config
from clusterea.data.synthetic import SHAPES, PairShape, generate, write_openea
from clusterea.data.synthetic.labels import ENTITIES_A_WORD, FEWEST_IN_VOCABULARY, LENGTH_SHARES
from clusterea.data.synthetic.words import draw_words
from clusterea.engines import InMemory
from clusterea.evaluation import evaluate
from clusterea.fusion.undecided import Undecided, VectorTable
from clusterea.numerics.knn import Nearest, Neighbors
from clusterea.numerics.lists import recall as shared
from clusterea.numerics.sinkhorn import sinkhorn, sinkhorn_log, sinkhorn_of_products
from clusterea.sharded import HeldScores, fuse, match
from clusterea.sharded.search import search, whole
from clusterea.training import train as learn
from clusterea.training.train import Trainer
from common import (
    DEVICE,
    GENERATED,
    RESULTS,
    SEEDS_SHARE,
    Record,
    TimedCut,
    commit,
    device_name,
    folder_of,
    generated,
    host_peak,
    put_record,
    read_pair,
    scaled,
    timed,
)

IDENTITY = ("part", "size", "model", "preset", "device")
DIMENSION = 768
STEP = 65_536  # rows of a block
Measured = Iterator[Record]


# ---- reading and generating

READ = """
import json, resource, sys, time
from pathlib import Path
import clusterea
from clusterea.data.formats import read_graph
start = time.perf_counter()
path = Path(sys.argv[1])
clusterea.load(path) if path.is_dir() else read_graph(path)
seconds = time.perf_counter() - start
host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"seconds": seconds, "host_bytes": host}))
"""


def read(arguments: argparse.Namespace) -> Measured:
    """Each reading in a process of its own, so that its peak memory is its own."""

    def measured(path: Path) -> Record:
        command = [sys.executable, "-c", READ, str(path)]
        ran = subprocess.run(command, check=True, capture_output=True, text=True)
        return dict(json.loads(ran.stdout))

    with tempfile.TemporaryDirectory() as scratch:
        pair, lines = Path(scratch) / "pair", Path(scratch) / "triples.nt"
        write_openea(generate(shape_of(arguments), 0), pair)
        size = sum((pair / f"rel_triples_{side}").stat().st_size for side in (1, 2))
        yield {"part": "read-tsv", "file_bytes": size, **measured(pair)}
        with (pair / "rel_triples_1").open() as source, lines.open("w") as target:
            for number, line in enumerate(islice(source, 3_000_000)):
                head, relation, tail = line.rstrip("\n").split("\t")
                value = f'"literal {number}"@en' if number % 10 == 9 else f"<{tail}>"
                target.write(f"<{head}> <{relation}> {value} .\n")
        yield {"part": "read-ntriples", "file_bytes": lines.stat().st_size, **measured(lines)}


def make(arguments: argparse.Namespace) -> Measured:
    """Generating and writing."""
    cpu = torch.device("cpu")
    benchmark, cost = timed(cpu, lambda: generate(shape_of(arguments), 0))
    yield {"part": "generate", **cost}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "pair"
        _, cost = timed(cpu, lambda: write_openea(benchmark, folder))
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    yield {"part": "write", "file_bytes": size, **cost}


ENCODE = """
import json, re, sys, time
from pathlib import Path
import numpy as np
import pyarrow.parquet as pq
from clusterea.config import preset
from clusterea.data.readable_names import comparable
from clusterea.sharded import encode_names
from clusterea.types import Pair, Texts

def resident(field):
    text = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\\s+(\\d+)", text)[1]) * 1024

columns = pq.read_table(sys.argv[1])
texts = Pair(*(Texts(np.arange(len(c) + 1), c.combine_chunks()) for c in columns.columns))
config = preset("default", 1_000_000).names
before = resident("VmRSS")
start = time.perf_counter()
rows = encode_names(texts.map(comparable), config)
seconds = time.perf_counter() - start
size = sum(side.numel() * side.element_size() for side in rows)
peak = resident("VmHWM")
print(json.dumps({"dimensions": config.dimensions, "seconds": seconds, "host_bytes": peak,
    "vector_bytes": size, "beyond_bytes": peak - before - size}))
"""


def encode(arguments: argparse.Namespace) -> Measured:
    """Names of made-up words to vectors, in a process of its own: its peak memory is its own."""
    count = sizes(arguments, 1_000_000, 1_000_000)
    draw = np.random.default_rng(0)
    words = draw_words(max(FEWEST_IN_VOCABULARY, max(count) // ENTITIES_A_WORD), draw)
    space = pa.scalar(" ", pa.large_string())

    def names(size: int) -> pa.Array:
        lengths = draw.choice(len(LENGTH_SHARES), size, p=LENGTH_SHARES) + 1
        drawn = draw.integers(len(words), size=(len(LENGTH_SHARES), size))
        parts = [words.take(pa.array(ids, mask=lengths <= n)) for n, ids in enumerate(drawn)]
        return pc.binary_join_element_wise(*parts, space, null_handling="skip")

    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "names.parquet"
        pq.write_table(
            pa.table(dict(zip(("source", "target"), count.map(names), strict=True))), path
        )
        command = [sys.executable, "-c", ENCODE, str(path)]
        ran = subprocess.run(command, check=True, capture_output=True, text=True)
    yield {"part": "names", "size": written(count), **json.loads(ran.stdout)}


# ---- training and the other stages


def train(arguments: argparse.Namespace) -> Measured:
    """A step of training, after an epoch to warm up, and inference."""
    device, config = torch.device(arguments.device), training_config(arguments.model)
    task = generated(shape_of(arguments)).task
    few = (config.seeds_per_step or 2000) * arguments.steps
    # An epoch of just the steps to time
    timed_task = AlignmentTask(task.graphs, task.seeds[:few])
    trainer, start = timed(device, lambda: Trainer(timed_task, config, device))
    trainer.run_epoch(0, None)
    steps: list[int] = []
    trainer.run_epoch(1, lambda progress: steps.append(progress.rows_touched))
    _, cost = timed(device, lambda: trainer.run_epoch(2, None))
    own = {"model": arguments.model, "entities": sum(g.num_entities for g in task.graphs)}
    cost |= {"seconds": cost["seconds"] / len(steps), "rows_touched": float(np.mean(steps))}
    yield {"part": "training-step", **own, "ready_seconds": start["seconds"], **cost}
    _, cost = timed(device, trainer.embeddings)
    yield {"part": "inference", **own, **cost}


def stages(arguments: argparse.Namespace) -> Measured:
    """Samplers, fusion, matching and evaluation of the `paper` preset, after one epoch."""
    device = torch.device(arguments.device)
    benchmark = generated(shape_of(arguments))
    task = benchmark.task
    settings = ["training.epochs=1", "sampling.classifier=softmax", *arguments.settings]
    config = preset("paper", max(g.num_entities for g in task.graphs), settings=settings)
    embeddings = learn(task, config.training, device=device)
    partitions, cut = [], TimedCut()
    for name in config.samplers:
        partition, cost = cut.sampled(name, task, embeddings, config.sampling, device)
        partitions.append(partition)
        yield {"part": name, "num_batches": partition.num_batches, **cost}
    similarity, cost = timed(
        device,
        lambda: fuse(
            [embeddings], partitions, task.seeds, task.tie_keys, config.fusion, device=device
        ),
    )
    yield {"part": "fusion", **cost}
    keys = task.tie_keys.map(lambda side: torch.from_numpy(side.copy()).to(device))
    alignment, cost = timed(device, lambda: match(HeldScores.of(similarity), keys, task.seeds))
    yield {"part": "matching", **cost}
    _, cost = timed(
        device,
        lambda: evaluate(similarity, benchmark.test_links, task.seeds, alignment=alignment),
    )
    yield {"part": "evaluation", **cost}


# ---- numerics


def sizes(arguments: argparse.Namespace, rows: int, columns: int) -> Pair[int]:
    """Both sides, shrunk by `--scale`."""
    return Pair(rows, columns).map(lambda count: int(count * arguments.scale))


def vectors(count: Pair[int], device: torch.device) -> Pair[Tensor]:
    """Unit rows around shared centers, float16 on a GPU; target i is near source i."""
    draw = torch.Generator(device).manual_seed(0)
    kind = torch.float16 if device.type == "cuda" else torch.float32
    centers = torch.randn(max(count) // 100 + 1, DIMENSION, generator=draw, device=device)
    result = count.map(lambda size: torch.empty(size, DIMENSION, dtype=kind, device=device))
    for start in range(0, max(count), STEP):
        noise = [torch.randn(STEP, DIMENSION, generator=draw, device=device) for _ in range(3)]
        center = torch.randint(len(centers), (STEP,), generator=draw, device=device)
        entity = centers[center] + noise[0]
        for side, own in zip(result, noise[1:], strict=True):
            part = side[start : start + STEP]
            part.copy_(torch.nn.functional.normalize(entity + 0.5 * own)[: len(part)])
    return result


def cosines(rows: Pair[Tensor]) -> Tensor:
    """In float32."""
    if rows.source.is_cuda:
        return torch.mm(rows.source, rows.target.T, out_dtype=torch.float32)
    return torch.mm(rows.source, rows.target.T)


def sinkhorn_rounds(arguments: argparse.Namespace) -> Measured:
    """100 rounds in float32, and as the fusion does it: in bfloat16 on a GPU.

    `difference` is the largest one from float64, on a small case.
    """
    device = torch.device(arguments.device)
    small = cosines(vectors(Pair(2000, 1500), device))
    exact, found = sinkhorn_log(small.double(), 0.02, 100), sinkhorn(small.clone(), 0.02, 100)
    gaps = (found.source - exact.source, found.target - exact.target)
    difference = max(float(gap.abs().max()) for gap in gaps)
    count = sizes(arguments, 62_600, 45_500)
    rows = vectors(count, device)
    similarity = cosines(rows)
    _, cost = timed(device, partial(sinkhorn, similarity, 0.02, 100))
    yield {"part": "sinkhorn", "size": written(count), "difference": difference, **cost}
    del similarity
    _, cost = timed(device, lambda: sinkhorn_of_products(rows.source, rows.target, 0.02, 100))
    yield {"part": "sinkhorn-of-products", "size": written(count), **cost}


def neighbors(arguments: argparse.Namespace) -> Measured:
    """Exact nearest neighbors, both directions, a sample checked by brute force."""
    device = torch.device(arguments.device)
    count = sizes(arguments, 1_877_793, 1_365_118)
    rows = vectors(count, device)
    draw = torch.Generator().manual_seed(1)
    ties = count.map(lambda size: torch.randint(-(2**62), 2**62, (size,), generator=draw))
    k = min(50, *count)
    exact = FusionConfig(candidates=k, hubness_neighbors=min(10, k))
    found, cost = timed(device, lambda: searched(rows, ties, exact, device))
    own: Record = {"part": "neighbors", "size": written(count), "k": k, **cost}
    checked = torch.randperm(count.source, generator=draw)[:200]
    _, best = best_of(rows.source[checked.to(device)], rows.target, k)
    same = [
        torch.isin(a, b).double().mean()
        for a, b in zip(best.cpu(), found.source.indices[checked].cpu(), strict=True)
    ]
    own["agreement"] = float(torch.stack(same).mean())
    if arguments.approximate:
        lists = replace(
            exact, search="approximate", search_compared=arguments.approximate, search_joined=0
        )
        near, cost = timed(device, lambda: searched(rows, ties, lists, device))
        own |= {"approximate_seconds": cost["seconds"], "recall": list(shared(near, found))}
    yield own


def searched(
    rows: Pair[Tensor], keys: Pair[Tensor], config: FusionConfig, device: torch.device
) -> Nearest:
    """The nearest of each row, in the order of rows."""
    tables = rows.map(lambda side: VectorTable([side], [1.0], device))
    ids = rows.map(lambda side: torch.arange(len(side)))
    entities = Undecided(ids, keys, tables, rows.map(len))
    entities, _, shards = search(InMemory(), entities, config, device)
    found, numbers = whole(InMemory(), shards), entities.entities.map(lambda side: side.to(device))

    def in_order(near: Neighbors, own: Tensor, others: Tensor) -> Neighbors:
        back = own.argsort()
        return Neighbors(others[near.indices[back]], near.values[back])

    return Pair(
        in_order(found.source, numbers.source, numbers.target),
        in_order(found.target, numbers.target, numbers.source),
    )


def best_of(rows: Tensor, others: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """(rows, count) each: the largest cosines, falling, and whose they are, by brute force."""
    values = rows.new_full((len(rows), 0), 0, dtype=torch.float32)
    indices = torch.empty(len(rows), 0, dtype=torch.int64, device=rows.device)
    for start in range(0, len(others), STEP):
        scores = rows.float() @ others[start : start + STEP].float().T
        new = torch.arange(start, start + scores.shape[1], device=rows.device).expand_as(scores)
        values, order = torch.cat([values, scores], 1).topk(
            min(count, values.shape[1] + scores.shape[1]), dim=1
        )
        indices = torch.cat([indices, new], 1).gather(1, order)
    return values, indices


def evaluate_links(arguments: argparse.Namespace) -> Measured:
    """Matching and evaluation of a random similarity with 80 cells a row."""
    device = torch.device(arguments.device)
    draw = torch.Generator(device).manual_seed(0)
    rows, width = sizes(arguments, 1_900_000, 1_370_000)
    links = int(1_044_000 * arguments.scale)  # seeds are the first 30 %
    ends = [torch.randperm(n, generator=draw, device=device)[:links] for n in (rows, width)]
    known = torch.stack(ends, 1)
    # A squared number crowds near 0: the first targets are candidates of many rows.
    columns = (torch.rand(rows, 80, generator=draw, device=device).square() * width).long()
    values = torch.rand(rows, 80, generator=draw, device=device).sqrt() * 0.8
    columns[known[:, 0], 0] = known[:, 1]
    columns, order = columns.sort(dim=1)
    first = torch.ones_like(columns, dtype=torch.bool)
    first[:, 1:] = columns.diff(dim=1) > 0
    offsets = torch.zeros(rows + 1, dtype=torch.int64, device=device)
    offsets[1:] = first.sum(1).cumsum(0)
    cells = values.gather(1, order)[first]
    similarity = Similarity(offsets, columns[first], cells, Pair(rows, width))
    keys = Pair(rows, width).map(lambda n: torch.arange(n, device=device))
    seeds, test = known[: int(0.3 * links)], known[int(0.3 * links) :]
    size = written(Pair(rows, width))
    for method in ("greedy", "mutual", "best"):
        work = partial(match, HeldScores.of(similarity), keys, seeds, method=method)
        alignment, cost = timed(device, work)
        yield {"part": f"match-{method}", "size": size, "cells": len(cells), **cost}
    _, cost = timed(device, lambda: evaluate(similarity, test, seeds, alignment=alignment))
    yield {"part": "evaluate", "size": size, "test_links": len(test), **cost}


def recall(arguments: argparse.Namespace) -> Measured:
    """How many of the nearest neighbors `fast` has as candidates, for 1,000 rows of each side.

    A candidate counts if it is no worse than the last true neighbor: ties may fall either way.
    """
    pair = arguments.pair or "debian-1m"
    benchmark = read_pair(arguments.data, pair)
    settings = ["matching.held_out=0", *arguments.settings]
    result = clusterea.align(
        benchmark.task, preset="fast", settings=settings, device=arguments.device
    )
    device, embeddings = torch.device(arguments.device), list(result.embeddings)
    k = result.config.fusion.candidates
    draw = torch.Generator().manual_seed(0)
    cells = Pair(result.similarity.rows(), result.similarity.columns)
    own: Record = {"part": "recall", "size": pair, "k": k, "rows": 1000}
    own["settings"] = arguments.settings
    for name, side, other in (("source", 0, 1), ("target", 1, 0)):
        mine, theirs = (embeddings[each].to(device) for each in (side, other))
        free = [
            torch.from_numpy(np.setdiff1d(np.arange(len(rows)), benchmark.task.seeds[:, each]))
            for each, rows in ((side, mine), (other, theirs))
        ]
        drawn = free[0][torch.randperm(len(free[0]), generator=draw)[:1000]]
        values = best_of(mine[drawn], theirs[free[1]], k)[0].cpu()
        place = torch.full((len(mine),), -1)
        place[drawn] = torch.arange(len(drawn))
        row, column = place[list(cells)[side]], list(cells)[other]
        row, column = row[row >= 0], column[row >= 0]
        cosines = (mine[drawn[row]].float() * theirs[column].float()).sum(1).cpu()
        is_good = cosines >= values[row, -1] - 1e-5
        found = row[is_good].bincount(minlength=len(drawn)).clamp(max=k)
        own[f"{name}_recall"] = float(found.double().mean()) / k
    yield own


# ---- the command


def busy(arguments: argparse.Namespace) -> Measured:
    """`clusterea align` alone and beside busy processes, in turn; the best of two runs or so."""
    pair = arguments.pair or f"ids15k-en-fr{GENERATED}"
    runs: dict[bool, list[Record]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as scratch:
        if pair.endswith(GENERATED):
            folder = Path(scratch) / "pair"
            write_openea(generate(SHAPES[pair.removesuffix(GENERATED)], 0), folder)
        else:
            folder, _ = folder_of(arguments.data, pair)
        asked = ["align", str(folder), "--seeds-share", str(SEEDS_SHARE), "--device", "cpu"]
        asked += ["--preset", arguments.preset, "--quiet"]
        for number in range(arguments.times):
            for is_busy, found in runs.items():
                out = Path(scratch) / f"run-{number}-{is_busy}"
                with busy_processes(arguments.beside if is_busy else 0):
                    found.append(ran([*asked, "--out", str(out)]))
    alone, beside = (min(found, key=lambda each: each["seconds"]) for found in runs.values())
    own: Record = {"part": "busy", "size": pair, "preset": arguments.preset}
    own |= {"beside": arguments.beside, **beside}
    own |= {f"alone_{name}": alone[name] for name in ("seconds", "cpu_seconds")}
    yield own | {"ratio": beside["seconds"] / alone["seconds"]}


def start(_: argparse.Namespace) -> Measured:
    """The median of ten starts of the command, after one that fills the cache of files."""
    for asked in (["--version"], ["--help"], ["align", "--help"]):
        found = [ran(asked) for _ in range(11)][1:]
        own: Record = {"part": "start", "size": " ".join(asked), "host_bytes": None}
        for name in ("seconds", "cpu_seconds"):
            own[name] = statistics.median(each[name] for each in found)
        yield own


def ran(asked: Sequence[str]) -> Record:
    """The costs of a command that succeeds; its memory, if it is more than that of this process."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "clusterea", *asked], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"clusterea {' '.join(asked)}: exit code {process.returncode}.")
    spent = usage.ru_utime + usage.ru_stime
    return {"seconds": seconds, "cpu_seconds": spent, "host_bytes": usage.ru_maxrss * 1024}


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """As many processes that never wait."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def written(count: Pair[int]) -> str:
    """`1877793x1365118`."""
    return "x".join(map(str, count))


def shape_of(arguments: argparse.Namespace) -> PairShape:
    """The shape that `--size` names."""
    size: str = arguments.size
    return scaled(int(size)) if size.isdigit() else SHAPES[size]


PARTS: dict[str, Callable[[argparse.Namespace], Measured]] = {
    "read": read,
    "generate": make,
    "names": encode,
    "train": train,
    "stages": stages,
    "sinkhorn": sinkhorn_rounds,
    "neighbors": neighbors,
    "evaluate": evaluate_links,
    "recall": recall,
    "busy": busy,
    "start": start,
}


def main() -> None:
    """Measures the parts, and prints and keeps a record of each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="+", choices=PARTS, metavar="PART")
    parser.add_argument("--size", default="dbp1m-en-fr")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--model", default="dual-amn", help="of train")
    parser.add_argument("--steps", type=int, default=50, help="of train")
    parser.add_argument("--approximate", type=int, metavar="N", help="of neighbors")
    parser.add_argument("--data", type=Path, help="the folder of the pair, of recall and busy")
    parser.add_argument("--pair", help="of recall and busy")
    parser.add_argument("--preset", default="fast", help="of busy")
    parser.add_argument("--beside", type=int, default=2, metavar="N", help="of busy")
    parser.add_argument("--times", type=int, default=2, metavar="N", help="runs of busy")
    parser.add_argument("--set", nargs="*", default=[], dest="settings", metavar="STAGE.FIELD=V")
    parser.add_argument("--device", default=DEVICE, choices=("cpu", "cuda"))
    parser.add_argument("--out", type=Path, default=RESULTS / "speed.jsonl")
    arguments = parser.parse_args()
    on_host = {"read", "generate", "names", "recall", "busy", "start"}
    for part in arguments.parts:
        device = torch.device("cpu" if part in on_host else arguments.device)
        for found in PARTS[part](arguments):
            record = {"part": found["part"], "size": arguments.size, **found}
            record |= {"device": device_name(device), "commit": commit()}
            record.setdefault("host_bytes", host_peak())
            print(json.dumps(record), flush=True)
            put_record(arguments.out, record, IDENTITY)


if __name__ == "__main__":
    main()
