"""A million entities from files to alignment.tsv, by the commands that a user types.

    .venv/bin/python benchmarks/million.py --out benchmarks/results/million.json
    .venv/bin/python benchmarks/million.py --data FOLDER/debian-1m --split random --out …

Without `--data`, a pair of DBP1M's EN-FR counts is generated first, which is not timed. Then
`clusterea align` with the paper's preset, CMCS by softmax, within 20 GiB of GPU memory, in a
process of its own.

Bars, on one H200-class GPU with 16 cores: 240 s from the start of the command to its end, 20 GiB of
GPU memory, 48 GiB of host memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from clusterea.workspace import write_json
from provenance import commit

SETTINGS = ["--preset", "paper", "--set", "sampling.classifier=softmax", "--memory", "20GiB"]
BARS = {"seconds": 240.0, "GPU memory, GiB": 20.0, "host memory, GiB": 48.0}


def clusterea(*arguments: str | Path) -> float:
    """Runs the command and returns its seconds; what it says is shown."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "clusterea", *map(str, arguments)], check=True)
    return time.perf_counter() - start


def figures(run: Path, seconds: float) -> dict[str, Any]:
    """What a run cost, and how good it is."""
    described = json.loads((run / "run.json").read_text())
    stages = described["stages"]
    return {
        "seconds": round(seconds, 1),
        "host_bytes": max(stage["peak_host_bytes"] for stage in stages),
        "gpu_bytes": max(stage["peak_gpu_bytes"] or 0 for stage in stages),
        "entities": described["data"]["entities"],
        "device": described["device"],
        "commit": commit(),
        "stages": stages,
        "metrics": json.loads((run / "metrics.json").read_text()),
    }


def show(found: dict[str, Any]) -> None:
    """Prints each stage, and the bars with what was measured."""
    for stage in found["stages"]:
        print(f"{stage['stage']:24} {stage['seconds']:7.1f} s")
    named = sum(stage["seconds"] for stage in found["stages"])
    print(f"{'reading, and the rest':24} {found['seconds'] - named:7.1f} s")
    gib = {
        f"{place} memory, GiB": found[f"{place.lower()}_bytes"] / 2**30 for place in ("GPU", "host")
    }
    for name, measured in {"seconds": found["seconds"], **gib}.items():
        verdict = "met" if measured <= BARS[name] else "MISSED"
        print(f"{name:24} {measured:7.1f}   at most {BARS[name]:g}: {verdict}")


def main() -> None:
    """Generates if need be, aligns, and says what it took."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="a pair's folder; generated if not given")
    parser.add_argument("--like", default="dbp1m-en-fr", help="whose counts the generated one has")
    parser.add_argument(
        "--split", default="first", choices=["first", "random"], help="of the links"
    )
    parser.add_argument("--set", nargs="*", default=[], dest="settings", metavar="STAGE.FIELD=V")
    parser.add_argument("--out", type=Path, help="keeps the figures, as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = arguments.data or Path(folder) / "data"
        if arguments.data is None:
            clusterea("generate", data, "--like", arguments.like)
        run = Path(folder) / "run"
        more = [part for each in arguments.settings for part in ("--set", each)]
        seeds = ["--split", arguments.split, "--seeds-share", "0.3"]
        seconds = clusterea("align", data, *seeds, *SETTINGS, *more, "--out", run)
        found = {"pair": data.name if arguments.data else arguments.like} | figures(run, seconds)
    show(found)
    if arguments.out:
        write_json(arguments.out, found)


if __name__ == "__main__":
    main()
