"""One process at a time writes into a run's folder."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from threading import Timer

import pytest

from clusterea.errors import InputError
from clusterea.run_lock import LOCK, _write, run_lock

HOLD = (
    "import sys, time; from pathlib import Path; from clusterea.run_lock import run_lock\n"
    "with run_lock(Path(sys.argv[1]), 'clusterea align'): print('held', flush=True); input()"
)
FORK = (  # the child keeps the descriptor
    "import os, signal, sys; from pathlib import Path; from clusterea.run_lock import run_lock\n"
    "with run_lock(Path(sys.argv[1]), 'clusterea align'):\n"
    "    if os.fork(): os.kill(os.getpid(), signal.SIGKILL)\n"
    "    sys.stdin.read(); os._exit(0)"
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


class TestLeftByADeadProcess:
    """After a SIGKILL, `.lock` names a process that has ended."""

    @pytest.fixture
    def dead(self, tmp_path: Path) -> Path:
        """A lock's file as a killed process leaves it."""
        process = holder(tmp_path)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return tmp_path / LOCK

    def test_a_lock_that_its_child_keeps_is_stale(self, tmp_path: Path) -> None:
        process = subprocess.Popen(
            [sys.executable, "-c", FORK, str(tmp_path)], text=True, stdin=subprocess.PIPE
        )
        try:
            assert process.wait() == -signal.SIGKILL
            with (tmp_path / LOCK).open() as file, pytest.raises(BlockingIOError):
                flock(file, LOCK_EX | LOCK_NB)
            with run_lock(tmp_path, "clusterea match"):
                assert json.loads((tmp_path / LOCK).read_text())["command"] == "clusterea match"
        finally:
            process.communicate()  # the child ends where its input does

    def test_a_new_holder_has_time_to_write_its_number(self, dead: Path) -> None:
        told = {**json.loads(dead.read_text()), "process": os.getpid()}
        with dead.open("r+") as file:
            flock(file, LOCK_EX | LOCK_NB)
            late = Timer(0.15, dead.write_text, [json.dumps(told)])
            late.start()
            refused = pytest.raises(InputError, match="is in use by")
            with refused, run_lock(dead.parent, "clusterea match"):
                pass
            late.join()
            assert os.path.samestat(dead.stat(), os.fstat(file.fileno()))

    def test_a_holder_whose_file_was_removed_takes_the_lock_anew(
        self, dead: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def removed_meanwhile(number: int, command: str) -> None:
            monkeypatch.undo()
            dead.unlink()
            _write(number, command)

        monkeypatch.setattr("clusterea.run_lock._write", removed_meanwhile)
        refused = pytest.raises(InputError, match=f"process {os.getpid()} on ")
        with (
            run_lock(dead.parent, "clusterea align"),
            refused,
            run_lock(dead.parent, "clusterea match"),
        ):
            pass


def test_a_lock_of_someone_else_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / LOCK
    with run_lock(tmp_path, "clusterea align"):
        path.unlink()
        path.write_text("of someone else")
    assert path.read_text() == "of someone else"


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
