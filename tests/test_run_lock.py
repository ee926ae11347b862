"""One process at a time writes into a run's folder."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from clusterea.errors import InputError
from clusterea.run_lock import LOCK, run_lock

HOLD = (
    "import sys, time; from pathlib import Path; from clusterea.run_lock import run_lock\n"
    "with run_lock(Path(sys.argv[1]), 'clusterea align'): print('held', flush=True); input()"
)


def holder(folder: Path) -> subprocess.Popen[str]:
    """Another process that has the lock of the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = holder(folder)
    try:
        said = (
            rf"run is in use by `clusterea align` \(process {process.pid} on {socket.gethostname()}"
        )
        with pytest.raises(InputError, match=said), run_lock(folder, "clusterea match"):
            pass
    finally:
        process.communicate("\n")
    with run_lock(folder, "clusterea match"):
        assert json.loads((folder / LOCK).read_text())["process"] == os.getpid()


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    process = holder(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (tmp_path / LOCK).exists()
    with run_lock(tmp_path, "clusterea align"):
        pass
    assert not (tmp_path / LOCK).exists()


def test_the_same_process_can_not_have_it_twice(tmp_path: Path) -> None:
    with (
        run_lock(tmp_path, "clusterea.align"),
        pytest.raises(InputError, match=f"process {os.getpid()} on "),
        run_lock(tmp_path, "clusterea.align"),
    ):
        pass
    with run_lock(tmp_path, "clusterea.align"):
        pass


def test_a_lock_kept_by_a_child_of_a_dead_process_is_stale(tmp_path: Path) -> None:
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True,
        check=True,
        text=True,
    )
    with run_lock(tmp_path, "clusterea align"):
        told = json.loads((tmp_path / LOCK).read_text())
        (tmp_path / LOCK).write_text(json.dumps({**told, "process": int(gone.stdout)}))
        with run_lock(tmp_path, "clusterea match"):
            assert json.loads((tmp_path / LOCK).read_text())["command"] == "clusterea match"


class TestWithoutLocks:
    """File systems that have none: what the file says decides."""

    @pytest.fixture(autouse=True)
    def no_locks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("clusterea.run_lock._try", lambda number: None)

    @pytest.mark.parametrize("host", ["another-machine", ""])
    def test_a_process_that_may_run_holds_it(self, host: str, tmp_path: Path) -> None:
        told = {"process": os.getpid(), "host": host or socket.gethostname()}
        told_all = {**told, "command": "clusterea align", "since": "yesterday"}
        (tmp_path / LOCK).write_text(json.dumps(told_all))
        with pytest.raises(InputError) as error, run_lock(tmp_path, "clusterea match"):
            pass
        assert ("If it has ended, delete" in str(error.value)) == bool(host)

    @pytest.mark.parametrize("text", ["", "rubbish", "{}", "[]"])
    def test_who_can_not_be_read_holds_nothing(self, text: str, tmp_path: Path) -> None:
        (tmp_path / LOCK).write_text(text)
        with run_lock(tmp_path, "clusterea align"):
            pass


def test_a_folder_made_for_the_lock_alone_is_removed(tmp_path: Path) -> None:
    with run_lock(tmp_path / "deep" / "run", "clusterea align"):
        pass
    assert list(tmp_path.iterdir()) == []
    with run_lock(tmp_path / "run", "clusterea align"):
        (tmp_path / "run" / "file").touch()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["file"]
