"""Runs `test_engines.py` and `on_ray.py` on Ray, in a network that has only loopback."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from own_network import ON_RAY, in_own_network

HERE = Path(__file__).parent
MARK = "CLUSTEREA_TEST"


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None and not os.environ.get("CI"),
    reason="Ray is not installed",
)
def test_on_ray() -> None:
    files = [HERE / "test_engines.py", HERE / "on_ray.py"]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "ray_plugin", "--tb=short"]
    mark = uuid.uuid4().hex
    path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    ran = subprocess.run(
        in_own_network(sys.executable, "-m", "pytest", *options, *files),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, ON_RAY: "1", MARK: mark, "PYTHONPATH": path},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "skipped" not in ran.stdout
    assert not running(mark)


def running(mark: str) -> list[str]:
    """The commands of processes that were started with this mark."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " ").strip())
        except OSError:  # it has ended, or is not ours
            continue
    return found
