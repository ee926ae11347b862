"""The records of rows: one JSON file a row, whole after each run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from clusterea.workspace import write_json
from paper_tables import OURS, SAME

Record = dict[str, Any]


def file_of(results: Path, row: str) -> Path:
    """Where a row's records are kept."""
    return results / f"{re.sub(r'[^a-z0-9]+', '-', SAME.get(row, row).lower())}.json"


def records_of(results: Path, row: str) -> list[Record]:
    """The records of a row so far; of ours, what stands beside the folder of the others."""
    if row in OURS:
        path = results.parent / "alignment_accuracy.json"
        kept = json.loads(path.read_text()) if path.is_file() else []
        return [_as_record(each) for each in kept if each["row"] == row and "metrics" in each]
    path = file_of(results, row)
    return list(json.loads(path.read_text())) if path.is_file() else []


def add_record(results: Path, record: Record) -> None:
    """Writes a record to those of its row."""
    results.mkdir(parents=True, exist_ok=True)
    row = record["row"]
    write_json(file_of(results, row), [*records_of(results, row), record])


def _as_record(run: Record) -> Record:
    """A run of `alignment_accuracy.py` in the form of the others."""
    stages = [{"stage": name, "seconds": seconds} for name, seconds in run["stages"].items()]
    return {
        **{name: run[name] for name in ("row", "pair", "seed", "settings", "metrics", "seconds")},
        **{name: run[name] for name in ("peak_host_bytes", "peak_gpu_bytes")},
        "stages": stages,
        "classifier": None,
        "memory": None,
        "commit": run.get("commit"),
        "hardware": run["device"],
    }
