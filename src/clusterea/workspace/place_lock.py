"""`place_lock`: one process at a time writes into a run at a URI.

Most object stores have no locks. The file `.lock` says who writes, and is renewed while that
process lives. A lock that is not renewed belongs to a dead process and is taken over. Two commands
that start within one second may both get the lock; the first then notices the loss at the next
renewal, and does not replace the outputs of the other.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from clusterea.errors import DataError, InputError
from clusterea.run_lock import LOCK, Holder
from clusterea.workspace.place import Place

RENEWED = 10.0  # seconds between two renewals
PATIENCE = 60.0  # seconds without a renewal, after which a lock is taken over
_LOOK = 1.0  # seconds between two looks at the lock of another process


class PlaceLock:
    """The lock of a place, held by this process."""

    def __init__(self, place: Place, command: str) -> None:
        self._place = place
        self._own = {
            "process": os.getpid(),
            "host": socket.gethostname(),
            "command": command,
            "since": datetime.now().astimezone().isoformat(" ", "seconds"),
            "token": uuid.uuid4().hex,
        }
        self._renewals = 0
        self._is_lost = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="lock", daemon=True)

    def acquire(self) -> None:
        """Takes the lock.

        Raises:
            InputError: Another process holds it.
        """
        found = _content(self._place)
        start = time.monotonic()
        while found and not _holder(found).has_ended and time.monotonic() - start < PATIENCE:
            time.sleep(_LOOK)
            last, found = found, _content(self._place)
            if found and found != last:  # renewed, so its process lives
                raise _refusal(self._place, _holder(found))
        self._write()
        self._thread.start()

    def check(self) -> None:
        """Raises if another process has taken over the lock."""
        found = {} if self._is_lost else _content(self._place)
        if found.get("token") != self._own["token"]:
            raise DataError(
                self._place.shown,
                "another command has taken over this run, so its outputs are not replaced. "
                "What this command computed is kept.",
            )

    def release(self) -> None:
        """Removes the lock, if it is still this process's."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        with suppress(DataError):  # it can't be reached now; the lock ends without renewals
            if _content(self._place).get("token") == self._own["token"]:
                self._place.remove(LOCK)

    def _renew(self) -> None:
        while not self._ended.wait(RENEWED):
            try:
                if _content(self._place).get("token") != self._own["token"]:
                    self._is_lost = True
                    return
                self._write()
            except DataError:  # no connection for now
                continue

    def _write(self) -> None:
        self._renewals += 1
        content = {**self._own, "renewals": self._renewals}
        self._place.write(LOCK, json.dumps(content).encode())


@contextmanager
def place_lock(place: Place, command: str) -> Iterator[PlaceLock]:
    """Holds the lock of a place during the block.

    Raises:
        InputError: Another process holds the lock.
        DataError: The place can't be written.
    """
    lock = PlaceLock(place, command)
    lock.acquire()
    try:
        yield lock
    finally:
        lock.release()


def _content(place: Place) -> dict[str, Any]:
    """The content of the lock; empty if there is none, or none that can be read."""
    content = place.read(LOCK)
    try:
        found = json.loads(content)
        _holder(found)
    except (ValueError, TypeError, KeyError):
        return {}
    return dict(found)


def _holder(found: dict[str, Any]) -> Holder:
    return Holder(int(found["process"]), found["host"], found["command"], found["since"])


def _refusal(place: Place, holder: Holder) -> InputError:
    return InputError(
        f"{place.shown} is in use by `{holder.command}` (process {holder.process} on "
        f"{holder.host}, since {holder.since}). Wait until it ends, or take another folder."
    )
