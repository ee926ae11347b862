"""What only Ray does. `test_ray_cluster.py` runs these tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import aligned_digest
import engine_units as units
import pytest
import torch

from clusterea.engines import open_engine
from clusterea.engines import ray_cluster as module
from clusterea.engines.ray_cluster import RayCluster
from clusterea.errors import InputError

# Runs the command line with a command that waits for a worker.
WAITS = """
import sys
import clusterea.cli, clusterea.entry
from clusterea.cli.console import show_stopped
from clusterea.errors import Stopped
def run():
    import engine_units as units
    from clusterea.engines import open_engine
    try:
        with open_engine("ray") as engine:
            held = engine.submit(units.slowly, 600, 1)
            print("ready", flush=True)
            engine.get([held])
    except Stopped as stop:
        show_stopped(resumes=False)
        sys.exit(stop.exit_code)
clusterea.cli.main = run
clusterea.entry.main()
"""
JOINS = """
import sys
import engine_units as units
from clusterea.engines import open_engine
with open_engine("ray", 2, sys.argv[1]) as engine:
    print(engine.get([engine.submit(units.slowly, 0, 7)]))
"""


def test_it_listens_on_loopback_only(ray_cluster: RayCluster) -> None:
    listening = [
        address
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        for _, address, _, state, *_ in [line.split()]
        if state == "0A"
    ]
    assert listening
    assert all(address.split(":")[0].endswith("0100007F") for address in listening)
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert os.environ["RAY_oom_grace_period_s"] == "0"  # noqa: SIM112  # Ray's own spelling


def test_a_worker_that_is_killed(ray_cluster: RayCluster, tmp_path: Path) -> None:
    rows = ray_cluster.submit(units.double, torch.ones(100_000))
    held = ray_cluster.submit(units.die_once, tmp_path / "flag", rows)
    (value,) = ray_cluster.get([held])
    assert (tmp_path / "flag").exists()
    assert value.equal(torch.full((100_000,), 6.0))


def test_a_task_has_one_thread(ray_cluster: RayCluster) -> None:
    assert ray_cluster.get([ray_cluster.submit(units.num_threads)]) == [1]


def test_shards_follow_workers_and_memory(
    ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_cluster, "shards", None)
    ray_cluster.fit(lambda _: 1)
    fewest = ray_cluster.shards
    assert fewest == 2 * int(ray_cluster._ray.cluster_resources()["CPU"])
    ray_cluster.shards = None
    ray_cluster.fit(lambda shards: 5 * ray_cluster.memory_per_worker * fewest // shards)
    assert ray_cluster.shards == 8 * fewest


def test_too_little_memory(ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "shards", None)
    with pytest.raises(InputError, match=r"a shard needs about .* Use machines with more memory"):
        ray_cluster.fit(lambda _: 2**50)
    ray_cluster.shards = 3
    with pytest.raises(InputError, match=r"a shard needs about .* Use --shards 12, or machines"):
        ray_cluster.fit(lambda shards: 10 * ray_cluster.memory_per_worker // shards)
    ray_cluster.fit(lambda shards: 3 * ray_cluster.memory_per_worker // shards)
    assert ray_cluster.shards == 3


@pytest.mark.parametrize("name", ["clusterea", "Python", "torch"])
def test_workers_with_another_version(
    ray_cluster: RayCluster, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = module.own_versions()
    monkeypatch.setattr(module, "own_versions", lambda: {**theirs, name: "9.9"})
    with pytest.raises(InputError) as caught:
        ray_cluster._check_versions()
    assert f"have {name} {theirs[name]}, but this process has {name} 9.9." in str(caught.value)


def test_another_driver_joins(ray_cluster: RayCluster) -> None:
    import ray

    address = ray.get_runtime_context().gcs_address
    ran = subprocess.run(
        [sys.executable, "-c", JOINS, address],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "[7]\n", "")
    assert ray_cluster.get([ray_cluster.put(3)]) == [3]  # it has not been shut down
    with pytest.raises(InputError, match="connected to a Ray cluster already"):
        open_engine("ray", 2, address).__enter__()


def test_an_alignment_has_the_same_bytes(ray_cluster: RayCluster) -> None:
    import ray

    address = ray.get_runtime_context().gcs_address
    program = Path(aligned_digest.__file__)
    ran = subprocess.run(
        [sys.executable, program, address, "3"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == aligned_digest.digest(shards=1) + "\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it(number: signal.Signals) -> None:
    names = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    # In a folder of its own, since other tests use Ray too; a short one, for sockets.
    with (
        tempfile.TemporaryDirectory(prefix="own-") as folder,
        subprocess.Popen(
            [sys.executable, "-c", WAITS],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**names, "TMPDIR": folder},
        ) as command,
    ):
        assert command.stdout is not None
        assert command.stdout.readline() == "ready\n"
        assert list(Path(folder).glob("clusterea-*"))
        command.send_signal(number)
        out, err = command.communicate()
        assert (command.returncode, out, err) == (128 + number, "", "Stopped.\n")
        assert not list(Path(folder).glob("clusterea-*"))
