"""Whole runs from files to `alignment.tsv`, by the command that a user types.

    .venv/bin/python benchmarks/million.py
    .venv/bin/python benchmarks/million.py --data FOLDER --pair debian-1m
    .venv/bin/python benchmarks/million.py --data FOLDER --pair debian-1m --preset fast --device cpu
    .venv/bin/python benchmarks/million.py --preset fast --entities 5500000,4500000
        --triples 22000000,12000000

Without `--data`, a pair of DBP1M's EN-FR counts is generated first, which is not timed, or one with
other counts. Seconds are those of the command, with its start, reading and writing. A run replaces
its record. `--manifests` keeps the run's `run.json`, for `plan.py --add`.

The default is `--preset paper --set sampling.classifier=softmax --memory 20GiB`. Bars on one
H200-class GPU with 16 cores, at DBP1M's size: `paper` in 120 s and 20 GiB of GPU memory, `fast` in
30 s, `default` in 150 s and 40 GiB of host memory, and in 75 s with
`--set self_training.rounds=0`; and ten million entities with `fast` in 120 s.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from clusterea.config import PRESETS
from common import (
    DEVICE,
    GENERATED,
    RESULTS,
    Record,
    commit,
    costs,
    device_name,
    flat_metrics,
    folder_of,
    put_record,
)

DBP1M = "dbp1m-en-fr"
IDENTITY = ("pair", "preset", "settings", "memory", "on")
BARS = {  # seconds, GiB of the GPU, GiB of the host
    "paper": (120, 20, 40),
    "fast": (30, None, 40),
    "default": (150, None, 40),
    "default self_training.rounds=0": (75, None, 40),
}
TEN_MILLION, ITS_BAR = 9_000_000, (120, None, 60)


def command(*arguments: str | Path) -> float:
    """Runs `clusterea` and returns its seconds."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "clusterea", *map(str, arguments)], check=True)
    return time.perf_counter() - start


def verdicts(record: Record, entities: int) -> list[str]:
    """A line for each bar of the run, if it is one that has bars."""
    run = " ".join([record["preset"], *record["settings"]]) if record["on"] == "cuda" else ""
    bars = BARS.get(run.removesuffix(" sampling.classifier=softmax"))
    if bars and entities > TEN_MILLION:
        bars = ITS_BAR if run == "fast" else None
    lines = []
    values = ("seconds", 1), ("gpu_bytes", 2**30), ("host_bytes", 2**30)
    for (name, unit), bound in zip(values, bars or (), strict=False):
        if bound is not None:
            value = (record[name] or 0) / unit
            verdict = "met" if value <= bound else "MISSED"
            shown = name.replace("_bytes", ", GiB")
            lines.append(f"{shown}: {value:.1f}, at most {bound:g}: {verdict}")
    return lines


def main() -> None:
    """Generates if need be, aligns, and keeps and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder of the pair")
    parser.add_argument("--pair", default=f"{DBP1M}{GENERATED}")
    parser.add_argument("--entities", metavar="N,M", help="those of DBP1M by default")
    parser.add_argument("--triples", metavar="N,M")
    parser.add_argument("--manifests", type=Path, metavar="FOLDER")
    parser.add_argument("--preset", default="paper", choices=PRESETS)
    parser.add_argument("--set", nargs="*", dest="settings", metavar="STAGE.FIELD=V")
    parser.add_argument("--memory", help="20GiB with the preset paper")
    parser.add_argument("--device", default=DEVICE, choices=("cpu", "cuda"))
    parser.add_argument("--out", type=Path, default=RESULTS / "million.jsonl")
    arguments = parser.parse_args()
    pair = arguments.pair
    if arguments.entities:
        pair = f"{arguments.entities.replace(',', '-')}{GENERATED}"
    is_paper = arguments.preset == "paper"
    memory = arguments.memory or ("20GiB" if is_paper else None)
    settings = arguments.settings
    if settings is None:
        settings = ["sampling.classifier=softmax"] if is_paper else []
    with tempfile.TemporaryDirectory() as scratch:
        data, run, share = Path(scratch) / "data", Path(scratch) / "run", 0.3
        if arguments.data:
            data, asked = folder_of(arguments.data, pair)
            share = asked or share
        else:
            like = ["--like", DBP1M]
            for name in ("entities", "triples"):
                given = getattr(arguments, name)
                like += [f"--{name}", given] if given else []
            command("generate", data, *like)
        split = "random" if pair.startswith("debian") else "first"
        options = ["--split", split, "--seeds-share", str(share), "--preset", arguments.preset]
        options += [part for each in settings for part in ("--set", each)]
        options += ["--memory", memory] if memory else []
        seconds = command("align", data, *options, "--device", arguments.device, "--out", run)
        described = json.loads((run / "run.json").read_text())
        metrics = json.loads((run / "metrics.json").read_text())
        if arguments.manifests:
            arguments.manifests.mkdir(parents=True, exist_ok=True)
            name = "-".join([pair, arguments.preset, *settings, f"{seconds:.2f}"])
            shutil.copy(run / "run.json", arguments.manifests / f"{name}.json")
    record = {
        "pair": pair,
        "preset": arguments.preset,
        "settings": settings,
        "memory": memory,
        "on": arguments.device,
        "seconds": seconds,
        **costs(described["stages"]),
        "metrics": flat_metrics(metrics),
        "device": device_name(torch.device(arguments.device)),
        "commit": commit(),
    }
    put_record(arguments.out, record, IDENTITY)
    print(json.dumps(record))
    print("\n".join(verdicts(record, sum(described["data"]["entities"]))))


if __name__ == "__main__":
    main()
