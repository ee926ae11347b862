"""A short form of `benchmarks/cluster.py`: the same bytes on Ray, also if a worker is killed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None and not os.environ.get("CI"),
    reason="Ray is not installed",
)
def test_a_cluster_gives_the_same_bytes(tmp_path: Path) -> None:
    """15,000 entities: takes a minute."""
    out = tmp_path / "records.jsonl"
    command = [sys.executable, "benchmarks/cluster.py", "short", "--pairs", "15000", "--out"]
    subprocess.run([*command, str(out)], cwd=ROOT, check=True)
    here, on_ray, killed = map(json.loads, out.read_text().splitlines())
    assert here["links"] > 1000
    assert (on_ray["engine"], on_ray["shards"], killed["lost"]) == ("ray", 8, "worker in search")
    for name in ("alignment", "similarity"):
        assert here[name] == on_ray[name] == killed[name]
