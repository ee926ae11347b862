"""The plan's time and memory beside those of whole runs, and the constants of the time.

    .venv/bin/python benchmarks/plan.py --write       # measures, fits, writes constants.toml
    .venv/bin/python benchmarks/plan.py --check       # prints expected / measured; runs nothing
    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/plan.py --write --clock cpu    # a busy machine

Generated pairs of three sizes, with three presets: nine runs, from files to outputs, each in a
process of its own; two more have names. Some train fewer epochs: see `RUNS`. It takes about a
quarter of an hour on two idle cores. A run replaces its record, which has the wall seconds and the
CPU seconds of each stage; the clock says which of them count. `--records` fits the records that are
there and runs nothing.

Bars: the seconds of each of the nine runs within a factor of 1.5 of the plan; the peak of host
memory at most what the plan says, and not less than that over 1.3.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import nnls

import clusterea
from clusterea.config import Config, preset
from clusterea.pipeline import Silent, run_in_folder
from clusterea.pipeline.cost import START, constants_of, operations, stage_seconds
from clusterea.pipeline.memory import expected_memory
from clusterea.pipeline.planned import Planned, planned_stages
from clusterea.pipeline.working_memory import Sizes
from clusterea.types import AlignmentTask, StageCost
from clusterea.workspace import Workspace, task_key
from common import RESULTS, Record, commit, device_name, put_record, read_records, table

CONSTANTS = Path(clusterea.__file__).parent / "pipeline" / "constants.toml"
RECORDS = RESULTS / "plan.jsonl"
IDENTITY = ("entities", "preset", "settings", "names", "threads")
FEWER = ["training.epochs=5", "self_training.epochs=3"]
RUNS: list[Record] = [  # entities of a side
    *({"entities": size, "preset": "fast", "settings": []} for size in (1500, 5000, 15_000)),
    *({"entities": size, "preset": "paper", "settings": []} for size in (1500, 5000, 15_000)),
    {"entities": 1500, "preset": "default", "settings": []},
    {"entities": 5000, "preset": "default", "settings": FEWER},
    {"entities": 15_000, "preset": "default", "settings": FEWER},
    {"entities": 5000, "preset": "fast", "settings": [], "names": "labels"},
    {"entities": 1500, "preset": "default", "settings": FEWER, "names": "labels"},
]
# The operations whose constants are fitted. Others of a stage are too much like these.
FITTED = {
    START: ("once", "triples"),
    "propagation": ("products", "edges"),
    "training": ("steps", "loss", "outputs", "messages", "inference"),
    "names": ("once", "numbers"),
    "translation": ("maps", "products"),
    "trust": ("once", "products"),
    "cmcs": ("boosting", "clusters", "entities"),
    "iscs": ("epochs", "entities"),
    "fusion": ("search", "selection", "rescoring", "gathering", "cells", "rounds", "batches"),
    "self-training": ("once", "cells"),
    "mean": ("once", "cells"),
    "matching": ("once", "cells", "optimal"),
    "evaluation": ("once", "cells"),
    "writing": ("once", "entities"),
}
LEAST_SECONDS = 0.3  # errors of shorter stages count as if these took so long
CPU = torch.device("cpu")


# ---- measuring


class Clocks(Silent):
    """Notes the seconds of each stage by both clocks."""

    def __init__(self) -> None:
        self.stages: list[Record] = []
        self.begun = 0.0

    def begin(self, stage: str) -> None:
        del stage
        self.begun = time.process_time()

    def end(self, cost: StageCost) -> None:
        own = {"stage": cost.stage, "wall": cost.seconds, "cpu": time.process_time() - self.begun}
        self.stages.append(own | {"host_bytes": cost.peak_host_bytes})


def command(run: Record) -> list[str]:
    """The command that makes the run's data."""
    size = run["entities"]
    shape = ["--entities", str(size), "--triples", str(5 * size)]
    return [sys.executable, "-m", "clusterea", "generate", *shape, "--labels"]


def measure_one(run: Record, folder: Path, out: Path, began: float) -> Record:
    """The record of one run. `began` is the time at which the process was started."""
    benchmark = clusterea.load(folder, seeds_share=0.3, names=run.get("names"))
    config = configured(benchmark.task, run)
    workspace, clocks = Workspace(out), Clocks()
    workspace.claim(task_key(benchmark.task))
    run_in_folder(workspace, benchmark, config, CPU, clocks)
    wall, cpu = time.time() - began, time.process_time()
    stages = clocks.stages
    start: Record = {"stage": START, "host_bytes": 0}
    start |= {"wall": wall - sum(each["wall"] for each in stages)}
    start |= {"cpu": cpu - sum(each["cpu"] for each in stages)}
    return run | {
        "threads": torch.get_num_threads(),
        "wall": wall,
        "cpu": cpu,
        "host_bytes": max(each["host_bytes"] for each in stages),
        "stages": [start, *stages],
        "device": device_name(CPU),
        "commit": commit(),
    }


def configured(task: AlignmentTask, run: Mapping[str, Any]) -> Config:
    """The run's settings."""
    return preset(run["preset"], max(task.num_entities), settings=run["settings"])


def measure(runs: Iterable[Record], out: Path) -> None:
    """Runs each in a process of its own, and puts its record into a file."""
    for run in runs:
        with tempfile.TemporaryDirectory() as name:
            folder, record = Path(name) / "pair", Path(name) / "record.json"
            made = [*command(run), str(folder)]
            subprocess.run(made, check=True, capture_output=True)
            own = ["--one", json.dumps(run), "--folder", name, "--began", str(time.time())]
            subprocess.run([sys.executable, __file__, *own], check=True)
            found = json.loads(record.read_text())
        put_record(out, found, IDENTITY)
        said = f"{found['wall']:.0f} s, {found['cpu']:.0f} CPU seconds"
        print(f"{run['preset']}, {run['entities']:,} entities a side: {said}", flush=True)


# ---- the model


def task_of(run: Mapping[str, Any]) -> AlignmentTask:
    """The run's data."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "pair"
        subprocess.run([*command(dict(run)), str(folder)], check=True, capture_output=True)
        return clusterea.load(folder, seeds_share=0.3, names=run.get("names")).task


def paired(record: Mapping[str, Any], sizes: Sizes) -> list[tuple[Planned, Record]]:
    """Each planned stage with the measured one. Rounds that did not take place are left out."""
    measured: dict[str, list[Record]] = {}
    for each in record["stages"]:
        measured.setdefault(each["stage"], []).append(each)
    stages = [Planned(START, START), *planned_stages(sizes.task, sizes.config)]
    return [(stage, measured[stage.label].pop(0)) for stage in stages if measured.get(stage.label)]


def fitted(pairs: Sequence[tuple[Planned, Record, Sizes]], clock: str) -> dict[str, Any]:
    """Constants, none below zero, with the least relative errors of the stages."""
    found: dict[str, Any] = {}
    for kind, names in FITTED.items():
        own = [each for each in pairs if constants_of(each[0].kind) == kind]
        if not own:
            continue
        counts = [operations(stage, sizes) for stage, _, sizes in own]
        rows = np.array([[each[name] for name in names] for each in counts], dtype=float)
        seconds = np.array([measured[clock] for _, measured, _ in own])
        weights = 1 / np.maximum(seconds, LEAST_SECONDS)
        scale = np.maximum(rows.max(0), 1e-30)
        solution, _ = nnls(rows / scale * weights[:, None], seconds * weights)
        found[kind] = dict(zip(names, solution / scale, strict=True))
    return found


def written(constants: Mapping[str, Any], threads: int, clock: str, cuda: Mapping[str, Any]) -> str:
    """The text of the data file."""
    lines = [
        "# Seconds per operation (`clusterea.pipeline.cost`). Written by benchmarks/plan.py.",
        "[cpu]",
        f"threads = {threads}",
        f'clock = "{clock}"',
    ]
    comment = "# From earlier measurements on one H200; `plan.py` does not fit them."
    for place, tables in (("cpu", constants), ("cuda", cuda)):
        lines += ["", comment] if place == "cuda" else []
        for kind, values in tables.items():
            lines += ["", f"[{place}.{kind}]"]
            lines += [f"{name} = {value:.4g}" for name, value in values.items() if value]
    return "\n".join(lines).replace(f"{comment}\n\n", f"{comment}\n") + "\n"


def write(records: Sequence[Record], clock: str) -> None:
    """Fits the constants and writes them; those of a GPU stay."""
    pairs = []
    for record in records:
        task = task_of(record)
        sizes = Sizes(task, configured(task, record), "cpu")
        pairs += [(stage, measured, sizes) for stage, measured in paired(record, sizes)]
    cuda = tomllib.loads(CONSTANTS.read_text())["cuda"]
    threads = records[0]["threads"]
    CONSTANTS.write_text(written(fitted(pairs, clock), threads, clock, cuda))


def check(records: Sequence[Record]) -> list[str]:
    """A table of expected over measured, and whether the bars are met."""
    known = tomllib.loads(CONSTANTS.read_text())["cpu"]
    lines, missed = [], 0
    for record in records:
        task = task_of(record)
        config = configured(task, record)
        sizes = Sizes(task, config, "cpu")
        stages = [Planned(START, START), *planned_stages(task, config)]
        seconds = sum(stage_seconds(stage, sizes, known) for stage in stages)
        took = record[known["clock"]]
        expected = expected_memory(task, config, CPU).host
        ratios = seconds / took, expected / record["host_bytes"]
        is_met = 1 / 1.5 <= ratios[0] <= 1.5 and 1 <= ratios[1] <= 1.3
        missed += not is_met
        name = " ".join([record["preset"], *record["settings"], record.get("names") or ""]).strip()
        memory = [f"{size / 2**20:,.0f}" for size in (record["host_bytes"], expected)]
        times = [f"{took:.0f}", f"{seconds:.0f}", f"{ratios[0]:.2f}"]
        lines.append([f"{record['entities']:,}", name, *times, " / ".join(memory)])
        lines[-1].append(f"{ratios[1]:.2f}")
    head = ["entities", "run", "seconds", "plan", "ratio", "MiB / plan", "ratio"]
    return [*table(head, lines), "", f"{missed} of {len(lines)} runs miss a bar."]


def main() -> None:
    """Measures, fits or checks."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="fit the constants and write them")
    parser.add_argument("--check", action="store_true", help="run nothing, compare the records")
    parser.add_argument("--records", action="store_true", help="with --write: run nothing")
    parser.add_argument("--clock", default="wall", choices=("wall", "cpu"))
    parser.add_argument("--out", type=Path, default=RECORDS)
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--began", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one is not None:
        folder = arguments.folder
        record = measure_one(arguments.one, folder / "pair", folder / "run", arguments.began)
        (folder / "record.json").write_text(json.dumps(record))
        return
    if not (arguments.check or arguments.records):
        measure(RUNS, arguments.out)
    threads = int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads()))
    records = [each for each in read_records(arguments.out) if each["threads"] == threads]
    records = records or read_records(arguments.out)
    if arguments.write:
        write(records, arguments.clock)
    print("\n".join(check(records)))


if __name__ == "__main__":
    main()
