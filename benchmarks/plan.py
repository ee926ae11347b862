"""The plan's time and memory beside those of whole runs, and the constants of the time.

    .venv/bin/python benchmarks/plan.py --write       # measures, fits, writes constants.toml
    .venv/bin/python benchmarks/plan.py --check       # prints expected / measured; runs nothing
    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/plan.py --write --clock cpu    # a busy machine
    .venv/bin/python benchmarks/plan.py --add RUN/run.json SECONDS --device cuda --write

Generated pairs of three sizes, with three presets: nine runs, from files to outputs, each in a
process of its own; two more have names. Some train fewer epochs: see `RUNS`. It takes about a
quarter of an hour on two idle cores. A run replaces its record, which has the wall seconds and the
CPU seconds of each stage; the clock says which of them count. `--records` fits the records that are
there and runs nothing.

`--add` takes runs that were measured elsewhere, such as those of `million.py` on a GPU, by their
manifests and the seconds of the command. The constants of a GPU are fitted on these only.

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
from clusterea.types import AlignmentTask, KnowledgeGraph, Pair, StageCost
from clusterea.workspace import Workspace, task_key
from common import RESULTS, Record, commit, device_name, put_record, read_records, table

CONSTANTS = Path(clusterea.__file__).parent / "pipeline" / "constants.toml"
RECORDS = RESULTS / "plan.jsonl"
IDENTITY = ("entities", "preset", "settings", "names", "threads", "on")
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
CPU_FITTED = {
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
GPU_FITTED = {
    START: ("once", "triples"),
    "propagation": ("products", "edges", "numbers"),
    "training": ("steps", "messages", "inference"),
    "cmcs": ("softmax", "clusters", "entities"),
    "iscs": ("epochs", "entities"),
    "fusion": ("search", "selection", "cells", "batches", "sinkhorn"),
    "self-training": ("once", "cells"),
    "mean": ("once", "cells"),
    "matching": ("once", "cells"),
    "evaluation": ("once", "cells"),
    "writing": ("once", "entities"),
}
FITTED = {"cpu": CPU_FITTED, "cuda": GPU_FITTED}
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
        "on": "cpu",
        "threads": torch.get_num_threads(),
        "wall": wall,
        "cpu": cpu,
        "host_bytes": max(each["host_bytes"] for each in stages),
        "stages": [start, *stages],
        "device": device_name(CPU),
        "commit": commit(),
    }


def added(manifest: Path, seconds: float) -> Record:
    """The record of a run that was measured elsewhere."""
    described = json.loads(manifest.read_text())
    stages = [
        {
            "stage": each["stage"],
            "wall": each["seconds"],
            "host_bytes": each["peak_host_bytes"],
            "gpu_bytes": each["peak_gpu_bytes"],
        }
        for each in described["stages"]
    ]
    start = {"stage": START, "wall": seconds - sum(each["wall"] for each in stages)}
    data = described["data"]
    return {
        "entities": data["entities"],
        "preset": "+".join([*described["config"]["models"], *described["config"]["samplers"]]),
        "settings": [f"self_training.rounds={described['config']['self_training']['rounds']}"],
        "on": "cpu" if described["device"].startswith("cpu") else "cuda",
        "data": {name: data[name] for name in ("entities", "triples", "seeds", "never_linked")},
        "config": described["config"],
        "wall": seconds,
        "host_bytes": max(each["host_bytes"] for each in stages),
        "gpu_bytes": max(each["gpu_bytes"] or 0 for each in stages),
        "stages": [start, *stages],
        "device": described["device"],
        "commit": commit(),
    }


def configured(task: AlignmentTask, run: Mapping[str, Any]) -> Config:
    """The run's settings."""
    if "config" in run:
        return Config.from_dict(run["config"])
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
    """The run's data, or as large ones."""
    if "data" in run:
        return as_large(run["data"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "pair"
        subprocess.run([*command(dict(run)), str(folder)], check=True, capture_output=True)
        return clusterea.load(folder, seeds_share=0.3, names=run.get("names")).task


def as_large(data: Mapping[str, Any]) -> AlignmentTask:
    """A task with as many entities, triples and seeds."""
    graphs = Pair(
        *(
            KnowledgeGraph(np.zeros((triples, 3), dtype=np.int64), entities, 1)
            for entities, triples in zip(data["entities"], data["triples"], strict=True)
        )
    )
    seeds = np.arange(data["seeds"]).repeat(2).reshape(-1, 2)
    last = zip(data["entities"], data["never_linked"], strict=True)
    return AlignmentTask(
        graphs, seeds, structural=Pair(*(np.arange(size - count, size) for size, count in last))
    )


def paired(record: Mapping[str, Any], sizes: Sizes) -> list[tuple[Planned, Record]]:
    """Each planned stage with the measured one. Rounds that did not take place are left out."""
    measured: dict[str, list[Record]] = {}
    for each in record["stages"]:
        measured.setdefault(each["stage"], []).append(each)
    stages = [Planned(START, START), *planned_stages(sizes.task, sizes.config)]
    return [(stage, measured[stage.label].pop(0)) for stage in stages if measured.get(stage.label)]


def fitted(
    pairs: Sequence[tuple[Planned, Record, Sizes]], clock: str, on: str = "cpu"
) -> dict[str, Any]:
    """Constants, none below zero, with the least relative errors of the stages."""
    found: dict[str, Any] = {}
    for kind, names in FITTED[on].items():
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


def written(constants: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of the data file: for each kind of device its values, and tables of constants."""
    lines = ["# Seconds per operation (`clusterea.pipeline.cost`). Written by benchmarks/plan.py."]
    for place, values in constants.items():
        plain = {name: value for name, value in values.items() if not isinstance(value, dict)}
        lines += ["", f"[{place}]"] if plain else []
        lines += [f"{name} = {json.dumps(value)}" for name, value in plain.items()]
        for kind, table_ in values.items():
            if kind not in plain:
                lines += ["", f"[{place}.{kind}]"]
                lines += [f"{name} = {value:.4g}" for name, value in table_.items() if value]
    return "\n".join(lines) + "\n"


def write(records: Sequence[Record], clock: str, on: str) -> None:
    """Fits the constants of one kind of device and writes them; the others stay."""
    pairs = []
    for record in records:
        task = task_of(record)
        sizes = Sizes(task, configured(task, record), on)
        pairs += [(stage, measured, sizes) for stage, measured in paired(record, sizes)]
    constants = tomllib.loads(CONSTANTS.read_text())
    constants[on] = fitted(pairs, clock, on)
    if on == "cpu":
        constants[on] = {"threads": records[0]["threads"], "clock": clock, **constants[on]}
    CONSTANTS.write_text(written(constants))


def check(records: Sequence[Record]) -> list[str]:
    """A table of expected over measured, and whether the bars are met."""
    lines, missed = [], 0
    for record in records:
        task = task_of(record)
        config = configured(task, record)
        on = record["on"]
        known = tomllib.loads(CONSTANTS.read_text())[on]
        sizes = Sizes(task, config, on)
        stages = [Planned(START, START), *planned_stages(task, config)]
        seconds = sum(stage_seconds(stage, sizes, known) for stage in stages)
        took = float(record.get(known.get("clock", "wall")) or record["wall"])
        memory_of = "gpu" if on == "cuda" else "host"
        expected = expected_memory(task, config, torch.device(on)).on(torch.device(on))
        peak = record[f"{memory_of}_bytes"]
        ratios = seconds / took, expected / peak
        is_met = 1 / 1.5 <= ratios[0] <= 1.5 and 1 <= ratios[1] <= 1.3
        missed += not is_met
        name = " ".join([record["preset"], *record["settings"], record.get("names") or ""]).strip()
        memory = [f"{size / 2**20:,.0f}" for size in (peak, expected)]
        times = [f"{took:.0f}", f"{seconds:.0f}", f"{ratios[0]:.2f}"]
        size = record["entities"]
        size = max(size) if isinstance(size, list) else size
        lines.append([on, f"{size:,}", name, *times, " / ".join(memory)])
        lines[-1].append(f"{ratios[1]:.2f}")
    head = ["on", "entities", "run", "seconds", "plan", "ratio", "MiB / plan", "ratio"]
    return [*table(head, lines), "", f"{missed} of {len(lines)} runs miss a bar."]


def batched(values: Sequence[str]) -> list[tuple[str, str]]:
    """The values two by two."""
    return list(zip(values[::2], values[1::2], strict=True))


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
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--add", nargs="+", metavar="RUN.json SECONDS", help="runs nothing")
    arguments = parser.parse_args()
    if arguments.one is not None:
        folder = arguments.folder
        record = measure_one(arguments.one, folder / "pair", folder / "run", arguments.began)
        (folder / "record.json").write_text(json.dumps(record))
        return
    for manifest, seconds in batched(arguments.add or ()):
        put_record(arguments.out, added(Path(manifest), float(seconds)), IDENTITY)
    if not (arguments.check or arguments.records or arguments.add):
        measure(RUNS, arguments.out)
    every = [each for each in read_records(arguments.out) if each["on"] == arguments.device]
    threads = int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads()))
    records = [each for each in every if each.get("threads") == threads] or every
    if arguments.write:
        write(records, arguments.clock, arguments.device)
    print("\n".join(check(records)))


if __name__ == "__main__":
    main()
