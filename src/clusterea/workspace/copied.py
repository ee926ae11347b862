"""`in_folder`: a run at a URI, as a local folder for the time of a command.

The folder is a copy that fills when it is needed: an artifact is fetched when it is first read, and
sent when it is finished. A file `.place` in it holds the URI. Outputs are sent when the command has
ended without an error, the manifest last.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from clusterea.errors import copy_path
from clusterea.files import is_uri
from clusterea.run_lock import is_running
from clusterea.workspace.folder import DECISIONS, PLACE
from clusterea.workspace.manifest import Manifest
from clusterea.workspace.place import PART, Place
from clusterea.workspace.place_lock import place_lock

MANIFEST = Manifest.path(Path()).name
_COPIES = f"clusterea-{socket.gethostname()}-"  # folders for copies; the process comes next
READ = (DECISIONS, "metrics.json", MANIFEST)  # files that commands read or remove


@contextmanager
def in_folder(run: Path | str, command: str | None, *, keeps: bool = False) -> Iterator[Path]:
    """The folder of a run; if the run is at a URI, a local copy.

    Args:
        run: A folder, or a URI.
        command: Who holds the lock of a URI meanwhile; None: a reader, which needs no lock.
        keeps: Keep the copy until Python ends, not only during the block.

    Raises:
        InputError: There is no such file system, or another process holds the lock.
        DataError: The URI can't be read or written.
    """
    if not isinstance(run, str) or not is_uri(run):
        yield Path(run)
        return
    place = Place(run)
    if place.local is not None:
        yield place.local
        return
    _clear_leftovers()
    scratch = Path(tempfile.mkdtemp(prefix=f"{_COPIES}{os.getpid()}-"))
    if keeps:
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    try:
        with visited(place, copy_path(scratch, place.shown), command) as folder:
            yield folder
    finally:
        if not keeps:
            shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def visited(place: Place, folder: Path, command: str | None) -> Iterator[Path]:
    """A local folder that stands for the run at `place` during the block: see `in_folder`."""
    folder.mkdir(parents=True)
    (folder / PLACE).write_text(place.uri)
    with nullcontext() if command is None else place_lock(place, command) as lock:
        for name in place.names():
            if name in READ:
                place.fetch(name, folder / name)
            elif lock is not None and name.startswith(".") and name.endswith(PART):
                place.remove(name)  # of a process that was killed
        before = _stamps(folder)
        yield folder
        after = _stamps(folder)
        changed = [name for name, stamp in after.items() if before.get(name) != stamp]
        if changed and lock is not None:
            lock.check()
        for name in before.keys() - after.keys():
            place.remove(name)
        for name in sorted(changed, key=lambda name: (name == MANIFEST, name)):
            place.send(folder / name, name)


def _clear_leftovers() -> None:
    """Removes the copies of processes that were killed."""
    for old in Path(tempfile.gettempdir()).glob(f"{_COPIES}*"):
        process = old.name.removeprefix(_COPIES).partition("-")[0]
        if process.isdecimal() and not is_running(int(process)):
            shutil.rmtree(old, ignore_errors=True)


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """The version of each file in the folder."""
    files = (each for each in folder.iterdir() if each.is_file() and each.name[0] != ".")
    return {each.name: (each.stat().st_ino, each.stat().st_mtime_ns) for each in files}
