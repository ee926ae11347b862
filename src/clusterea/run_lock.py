"""`run_lock`: one process at a time writes into a run's folder.

The kernel's lock (`flock`) ends with the process that holds it, even if that is killed. The file
`.lock` describes this process.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

from clusterea.errors import DataError, InputError
from clusterea.files import make_folder

LOCK = ".lock"
_TAKEN = (errno.EAGAIN, errno.EACCES)
_LOOKS, _PAUSE = 5, 0.1  # how often, and after how many seconds, to read a dead holder again


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that writes into a folder."""

    process: int
    host: str
    command: str
    since: str

    @property
    def is_here(self) -> bool:
        """Whether the process is on this machine."""
        return self.host == socket.gethostname()

    @property
    def has_ended(self) -> bool:
        """Whether the process has certainly ended."""
        return self.is_here and not is_running(self.process)


@contextmanager
def run_lock(folder: Path, command: str) -> Iterator[None]:
    """Holds the lock of a run's folder during the block.

    A folder that was made for the lock, and is still empty at the end, is removed.

    Raises:
        InputError: Another process holds the lock.
    """
    made = _missing(folder)
    try:
        make_folder(folder)
        number = _acquired(folder, command)
    except OSError as error:
        raise DataError(folder, f"can't be written: {error.strerror or error}.") from error
    try:
        yield
    finally:
        if is_at(folder / LOCK, number):
            (folder / LOCK).unlink(missing_ok=True)  # while it is still held
        os.close(number)
        with suppress(OSError):  # the folder is not empty
            for each in made:
                each.rmdir()


def is_running(process: int) -> bool:
    """Whether a process with this number runs on this machine."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # a process of another user
        return True
    return True


def _missing(folder: Path) -> list[Path]:
    """The folders that do not exist yet, the innermost first."""
    resolved = Path(os.path.realpath(folder))
    return [each for each in (resolved, *resolved.parents) if not each.exists()]


def _acquired(folder: Path, command: str) -> int:
    """The open file descriptor that has the lock."""
    path = folder / LOCK
    looks = 0
    while True:
        number = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            is_ours = _try(number)
            holder = _holder(number)
            if is_ours is False and (holder is None or not holder.has_ended):
                raise InputError(_refusal(folder, holder))
            if is_ours is None and holder is not None and not holder.has_ended:
                raise InputError(_refusal(folder, holder))
            if is_ours is False:
                # Either a child of the dead process keeps the lock, or a new holder has not
                # written its number yet.
                looks += 1
                if looks < _LOOKS:
                    time.sleep(_PAUSE)
                elif is_at(path, number):
                    path.unlink(missing_ok=True)
            elif is_at(path, number):  # else the last holder has removed the file
                _write(number, command)
                if is_at(path, number):  # else another process has removed the file as stale
                    return number
        except BaseException:
            os.close(number)
            raise
        os.close(number)


def _try(number: int) -> bool | None:
    """Whether the lock was acquired; None if the file system has no locks."""
    try:
        flock(number, LOCK_EX | LOCK_NB)
    except OSError as error:
        return False if error.errno in _TAKEN else None
    return True


def _holder(number: int) -> Holder | None:
    """The holder in the lock's file; None if it can't be read."""
    try:
        return Holder(**json.loads(os.pread(number, 4096, 0)))
    except (ValueError, TypeError):
        return None


def _write(number: int, command: str) -> None:
    since = datetime.now().astimezone().isoformat(" ", "seconds")
    holder = {"process": os.getpid(), "host": socket.gethostname()}
    os.ftruncate(number, 0)
    os.pwrite(number, json.dumps({**holder, "command": command, "since": since}).encode(), 0)


def is_at(path: Path, number: int) -> bool:
    """Whether the open file `number` is still the one at `path`."""
    try:
        return os.path.samestat(path.stat(), os.fstat(number))
    except FileNotFoundError:
        return False


def _refusal(folder: Path, holder: Holder | None) -> str:
    if holder is None:
        return f"{folder} is in use by another process. Wait until it ends, or take another folder."
    who = f"process {holder.process} on {holder.host}, since {holder.since}"
    stale = "" if holder.is_here else f" If it has ended, delete {folder / LOCK}."
    return (
        f"{folder} is in use by `{holder.command}` ({who}). "
        f"Wait until it ends, or take another folder.{stale}"
    )
