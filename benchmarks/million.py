"""Whole runs from files to `alignment.tsv`, by the command that a user types.

    .venv/bin/python benchmarks/million.py
    .venv/bin/python benchmarks/million.py --data FOLDER --pair debian-1m
    .venv/bin/python benchmarks/million.py --data FOLDER --pair debian-1m --preset fast --device cpu

Without `--data`, a pair of DBP1M's EN-FR counts is generated first, which is not timed. Seconds are
those of the command, with its start, reading and writing. A run replaces its record.

Bars for a million entities with `--preset paper --set sampling.classifier=softmax --memory 20GiB`,
the default here, on one H200-class GPU with 16 cores: 240 s, 20 GiB of GPU memory, and 48 GiB of
host memory.
"""

from __future__ import annotations

import argparse
import json
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
    commit,
    costs,
    device_name,
    flat_metrics,
    folder_of,
    put_record,
)

IDENTITY = ("pair", "preset", "settings", "memory", "on")
BARS = {"seconds": (1.0, 240.0), "gpu_bytes": (2**30, 20.0), "host_bytes": (2**30, 48.0)}


def command(*arguments: str | Path) -> float:
    """Runs `clusterea` and returns its seconds."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "clusterea", *map(str, arguments)], check=True)
    return time.perf_counter() - start


def main() -> None:
    """Generates if need be, aligns, and keeps and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder of the pair")
    parser.add_argument("--pair", default=f"dbp1m-en-fr{GENERATED}")
    parser.add_argument("--preset", default="paper", choices=PRESETS)
    parser.add_argument("--set", nargs="*", dest="settings", metavar="STAGE.FIELD=V")
    parser.add_argument("--memory", help="20GiB with the preset paper")
    parser.add_argument("--device", default=DEVICE, choices=("cpu", "cuda"))
    parser.add_argument("--out", type=Path, default=RESULTS / "million.jsonl")
    arguments = parser.parse_args()
    is_paper = arguments.preset == "paper"
    memory = arguments.memory or ("20GiB" if is_paper else None)
    settings = arguments.settings
    if settings is None:
        settings = ["sampling.classifier=softmax"] if is_paper else []
    with tempfile.TemporaryDirectory() as scratch:
        data, run, share = Path(scratch) / "data", Path(scratch) / "run", 0.3
        if arguments.data:
            data, asked = folder_of(arguments.data, arguments.pair)
            share = asked or share
        else:
            command("generate", data, "--like", arguments.pair.removesuffix(GENERATED))
        split = "random" if arguments.pair.startswith("debian") else "first"
        options = ["--split", split, "--seeds-share", str(share), "--preset", arguments.preset]
        options += [part for each in settings for part in ("--set", each)]
        options += ["--memory", memory] if memory else []
        seconds = command("align", data, *options, "--device", arguments.device, "--out", run)
        described = json.loads((run / "run.json").read_text())
        metrics = json.loads((run / "metrics.json").read_text())
    record = {
        "pair": arguments.pair,
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
    for name, (unit, bound) in BARS.items():
        value = (record[name] or 0) / unit
        verdict = "met" if value <= bound else "MISSED"
        print(f"{name.replace('_bytes', ', GiB')}: {value:.1f}, at most {bound:g}: {verdict}")


if __name__ == "__main__":
    main()
