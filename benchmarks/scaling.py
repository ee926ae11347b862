"""How cost grows with size: seconds of each stage and memory, as a table and a plot.

    .venv/bin/python benchmarks/scaling.py --entities 15000 150000 1500000 3000000
        --presets paper fast default [--device cpu]
    .venv/bin/python benchmarks/scaling.py --plot docs/images/scaling.svg

Pairs have the shape of DBP1M's EN-FR and so many entities on both sides together; 30 % of the links
are seeds. Each run has a process of its own and a warm-up that is not timed. `paper` uses softmax
as the classifier of CMCS. A run replaces its record. `docs/speed.md` shows the plot.

An exponent is log(ratio of costs) / log(ratio of entities): 1 is linear. Bar: at most 1.2 for the
total between the two largest sizes, or `docs/speed.md` says which stage is not linear, and why.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

import torch

import clusterea
from clusterea.config import PRESETS
from clusterea.data.synthetic import SHAPES
from common import (
    DEVICE,
    RESULTS,
    Record,
    commit,
    costs,
    device_name,
    generated,
    put_record,
    read_records,
    scaled,
    table,
    timed,
)
from plots import Look, Panel, Point, small_multiples

IDENTITY = ("entities", "preset", "settings", "on", "threads")
ALWAYS = {"paper": ["sampling.classifier=softmax"]}  # XGBoost would be most of the time
LOOKS = {  # Okabe and Ito's colors, which color-blind readers can tell apart
    "linear": Look("linear", "#333333", line="--"),
    "training": Look("training", "#0072B2", "s"),
    "propagation": Look("propagation", "#56B4E9", "P"),
    "sampling: cmcs": Look("CMCS", "#009E73", "^"),
    "sampling: iscs": Look("ISCS", "#E69F00", "v"),
    "fusion": Look("fusion", "#D55E00", "D"),
    "self-training": Look("pseudo-seeds", "#999999", "X"),
    "matching": Look("matching", "#CC79A7", "*"),
    "total": Look("total", "#000000", "o"),
}


def measure(own: Record) -> Record:
    """The record of one run, in a process of its own."""
    device = torch.device(own["on"])
    settings = [*ALWAYS.get(own["preset"], ()), *own["settings"]]
    few = ["training.epochs=1", "sampling.num_batches=2", "sampling.gcn_epochs=2"]

    def align(benchmark: clusterea.Benchmark, more: Sequence[str]) -> clusterea.AlignmentResult:
        given = [*settings, *more]
        return clusterea.align(benchmark, preset=own["preset"], settings=given, device=own["on"])

    align(generated(SHAPES["demo"]), few).evaluate()  # loads libraries and kernels
    benchmark, generation = timed(device, lambda: generated(scaled(own["entities"])))
    start = time.perf_counter()
    result = align(benchmark, [])
    seconds = time.perf_counter() - start
    metrics, evaluation = timed(device, result.evaluate)
    sampling = result.config.sampling
    return own | {
        "seconds": seconds,
        **costs(cost.to_dict() for cost in result.timings),
        "generation_seconds": generation["seconds"],
        "evaluation_seconds": evaluation["seconds"],
        "hits@1": metrics.test_candidates.source.hits[1],
        "all_hits@1": metrics.all_candidates.source.hits[1],
        "num_batches": sampling.num_batches if result.partitions else None,
        "device": device_name(device),
        "commit": commit(),
    }


def run_all(arguments: argparse.Namespace) -> None:
    """Each size and preset; a run that is killed for lack of memory loses only its own figures."""
    for entities in sorted(arguments.entities):
        for name in arguments.presets:
            own: Record = {"entities": entities, "preset": name, "settings": arguments.settings}
            own |= {"on": arguments.device, "threads": torch.get_num_threads()}
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                try:
                    record = pool.submit(measure, own).result()
                except (BrokenProcessPool, MemoryError, RuntimeError) as error:
                    print(f"{name}, {entities} entities failed: {error}", flush=True)
                    continue
            put_record(arguments.out, record, IDENTITY)
            said = f"{record['seconds']:.1f} s, H@1 {record['hits@1']:.1%}"
            print(f"{name}, {entities} entities: {said}, {record['stages']}", flush=True)


def series(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Preset and device → its records, by size."""
    found: dict[str, list[Record]] = {}
    for each in sorted(records, key=lambda record: record["entities"]):
        if not each["settings"]:
            where = "GPU" if each["on"] == "cuda" else f"{each['threads']} CPU cores"
            found.setdefault(f"`{each['preset']}`, {where}", []).append(each)
    return found


def exponent(records: Sequence[Record], values: Sequence[float]) -> float:
    """Between the two largest sizes."""
    (small, large), (before, after) = records[-2:], values[-2:]
    return math.log(after / before) / math.log(large["entities"] / small["entities"])


def cost_table(records: Sequence[Record]) -> list[str]:
    """A line for each cost of each preset and device."""
    lines = []
    sizes = sorted({each["entities"] for each in records})
    for name, points in series(records).items():
        if len(points) < 2:
            continue
        rows: dict[str, list[float]] = {"seconds": [each["seconds"] for each in points]}
        if all("fusion" in each["stages"] for each in points):
            rows["fusion, seconds"] = [each["stages"]["fusion"] for each in points]
        for kind, shown in (("gpu", "GPU"), ("host", "host")):
            if all(each[f"{kind}_bytes"] for each in points):
                rows[f"{shown} memory, GB"] = [each[f"{kind}_bytes"] / 1e9 for each in points]
        for what, values in rows.items():
            cells = dict(zip((each["entities"] for each in points), values, strict=True))
            digits = [f"{cells[n]:,.{cells[n] < 100:d}f}" if n in cells else "" for n in sizes]
            lines.append([f"{name}: {what}", *digits, f"{exponent(points, values):.2f}"])
        hits = {each["entities"]: f"{each['hits@1']:.1%}" for each in points}
        lines.append([f"{name}: H@1", *(hits.get(n, "") for n in sizes), ""])
    return table(["entities", *(f"{n:,}" for n in sizes), "exponent"], lines)


def plot(path: Path, records: Sequence[Record]) -> None:
    """A column for each preset and device: seconds of stages, and memory."""
    columns = []
    for name, points in series(records).items():
        lines: dict[str, list[Point]] = {}

        def add(line: str, record: Record, value: float, to: dict[str, list[Point]]) -> None:
            to.setdefault(line, []).append(Point(record["entities"], value, value, value))

        last = points[-1]
        memory: dict[str, list[Point]] = {}
        for each in points:
            add("total", each, each["seconds"], lines)
            add("linear", each, last["seconds"] * each["entities"] / last["entities"], lines)
            for stage, seconds in each["stages"].items():
                if stage in LOOKS and seconds > 0.01:
                    add(stage, each, seconds, lines)
            add("total", each, (each["gpu_bytes"] or each["host_bytes"]) / 1e9, memory)
        where = "GPU" if last["gpu_bytes"] else "host"
        x_label = "entities of both sides"
        columns.append(
            [
                Panel(name.replace("`", ""), x_label, "seconds", lines, log_x=True, log_y=True),
                Panel("", x_label, f"peak {where} memory (GB)", memory, log_x=True),
            ]
        )
    small_multiples(path, columns, LOOKS)


def main() -> None:
    """Measures and prints the table, or draws the plot."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--entities", nargs="*", type=int, default=[15_000, 150_000])
    parser.add_argument("--presets", nargs="*", default=["paper", "fast"], choices=PRESETS)
    parser.add_argument("--set", nargs="*", default=[], dest="settings", metavar="STAGE.FIELD=V")
    parser.add_argument("--device", default=DEVICE, choices=("cpu", "cuda"))
    parser.add_argument("--out", type=Path, default=RESULTS / "scaling.jsonl")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg|png", help="run nothing")
    arguments = parser.parse_args()
    if arguments.plot:
        plot(arguments.plot, read_records(arguments.out))
        return
    run_all(arguments)
    print("\n".join(cost_table(read_records(arguments.out))))


if __name__ == "__main__":
    main()
