"""`run_lock`: one process at a time writes into a run's folder.

The lock is the kernel's (`flock`), so that it ends with the process that holds it, however that
ends. The file `.lock` says who holds it.
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
_LOOKS, _PAUSE = 5, 0.1  # how often and how far apart (seconds) a dead holder is read again


@dataclass(frozen=True, slots=True)
class Holder:
    """Who writes into a folder."""

    process: int
    host: str
    command: str
    since: str

    @property
    def is_here(self) -> bool:
        """Whether it is a process of this machine."""
        return self.host == socket.gethostname()

    @property
    def has_ended(self) -> bool:
        """Whether it has certainly ended."""
        return self.is_here and not is_running(self.process)


@contextmanager
def run_lock(folder: Path, command: str) -> Iterator[None]:
    """Holds the lock of a run's folder for as long as the block lasts.

    A folder that was made for the lock's sake, and is still empty at the end, is removed.

    Raises:
        InputError: Another process holds it.
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
        if _is_at(folder / LOCK, number):
            (folder / LOCK).unlink(missing_ok=True)  # while it is still held
        os.close(number)
        with suppress(OSError):  # it is not empty
            for each in made:
                each.rmdir()


def is_running(process: int) -> bool:
    """Whether there is a process of this number on this machine."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is someone else's
        return True
    return True


def _missing(folder: Path) -> list[Path]:
    """The folders that are not there yet, the innermost first."""
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
                # A child of the dead process keeps the lock, or a new holder is about to write
                # its own number.
                looks += 1
                if looks < _LOOKS:
                    time.sleep(_PAUSE)
                elif _is_at(path, number):
                    path.unlink(missing_ok=True)
            elif _is_at(path, number):  # else whoever held it has removed the file meanwhile
                _write(number, command)
                if _is_at(path, number):  # else it was taken for a dead process's
                    return number
        except BaseException:
            os.close(number)
            raise
        os.close(number)


def _try(number: int) -> bool | None:
    """Whether the lock could be had; None where this file system knows no locks."""
    try:
        flock(number, LOCK_EX | LOCK_NB)
    except OSError as error:
        return False if error.errno in _TAKEN else None
    return True


def _holder(number: int) -> Holder | None:
    """Who wrote into the lock's file, as far as that can be read."""
    try:
        return Holder(**json.loads(os.pread(number, 4096, 0)))
    except (ValueError, TypeError):
        return None


def _write(number: int, command: str) -> None:
    since = datetime.now().astimezone().isoformat(" ", "seconds")
    holder = {"process": os.getpid(), "host": socket.gethostname()}
    os.ftruncate(number, 0)
    os.pwrite(number, json.dumps({**holder, "command": command, "since": since}).encode(), 0)


def _is_at(path: Path, number: int) -> bool:
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
