"""Output files: a regular file is written beside its place and renamed, a stream is written into.

A regular file is there whole or not at all. FIFOs, devices and open descriptors (`/dev/stdout`) are
never replaced. `-` is standard output.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from clusterea.errors import DataError

PART = re.compile(r"-(?P<process>\d+)-[0-9a-f]{8}\.part$")  # as `part_of` names them
STANDARD_OUTPUT = Path("-")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DESCRIPTOR = re.compile(r"/proc/(?P<process>[^/]+)(/task/[^/]+)?/fd/(?P<number>\d+)")
_MOST_LINKS = 40  # that the system itself follows


def part_of(path: Path) -> Path:
    """Where this process writes what will be `path`; a run's folder clears what a kill leaves."""
    return path.with_name(f".{path.name}-{os.getpid()}-{uuid.uuid4().hex[:8]}.part")


@contextmanager
def replacing(path: Path, needed: int = 0) -> Iterator[Path]:
    """Where to write what becomes `path` when the block ends without an error.

    A symlink is followed. What is no regular file gets the bytes once they are complete, and
    stays what it is.

    Args:
        path: The file, FIFO or device; `-`: standard output.
        needed: Its bytes, if they are known; a full disk is reported with them.

    Raises:
        DataError: It can't be written.
        BrokenPipeError: Nobody reads the stream any more.
    """
    disk, written = path.parent, 0
    try:
        resolved = _followed(path)
        if _is_stream(resolved):
            with tempfile.TemporaryDirectory(prefix="clusterea-") as folder:
                disk = Path(folder).parent
                beside = Path(folder) / "stream"
                yield beside
                _copy_into(resolved, beside, path)
            return
        make_folder(resolved.parent)
        disk = resolved.parent
        beside = part_of(resolved)
        try:
            yield beside
            with beside.open("rb") as file:  # on disk before it replaces the other
                os.fsync(file.fileno())
            beside.replace(resolved)
        finally:
            written = beside.stat().st_size if beside.exists() else 0
            beside.unlink(missing_ok=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno in FULL:
            raise _full(path, error, needed, written, disk) from error
        raise DataError(
            _whole_name(path), f"can't be written: {error.strerror or error}."
        ) from error


def leads_to_stream(path: Path) -> bool:
    """Whether `replacing` writes into what is there: standard output, a FIFO, a device."""
    return _is_stream(_followed(path))


def make_folder(path: Path) -> None:
    """Makes a folder and those above it, unless it is there; a link to nothing gets its target."""
    Path(os.path.realpath(path)).mkdir(parents=True, exist_ok=True)


def readable_size(count: int) -> str:
    """Bytes as a person reads them."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def free_space(path: Path) -> int:
    """Bytes that are free on the disk where `path` is, or would be."""
    resolved = Path(os.path.realpath(path))
    while not resolved.exists():
        resolved = resolved.parent
    return shutil.disk_usage(resolved).free


def _copy_into(stream_path: Path, file_path: Path, asked: Path) -> None:
    """Copies a file into a FIFO, a device or standard output."""
    try:
        with file_path.open("rb") as file, _opened(stream_path) as stream:
            shutil.copyfileobj(file, stream, 1 << 20)
    except BrokenPipeError:
        raise
    except OSError as error:  # a device that is full says nothing of the disk
        name = "standard output" if asked == STANDARD_OUTPUT else asked
        raise DataError(name, f"can't be written: {error.strerror or error}.") from error


def _full(path: Path, error: OSError, needed: int, written: int, disk: Path) -> DataError:
    what = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
    takes = f"more than {readable_size(written)} needed, " if written else ""
    if needed > written:
        takes = f"at least {readable_size(needed)} needed, "
    free = readable_size(free_space(disk))
    where = "" if disk == path.parent else f" in {disk}"
    return DataError(
        _whole_name(path),
        f"can't be written: {what} ({takes}{free} free{where}). Make room, and run the same "
        "command again.",
    )


def _whole_name(path: Path) -> Path:
    """The path that a user will know: that of an artifact once it is whole."""
    names = (
        PART.sub("", part).removeprefix(".") if PART.search(part) else part for part in path.parts
    )
    return Path(*names)


def _is_stream(resolved: Path) -> bool:
    if resolved == STANDARD_OUTPUT or _DESCRIPTOR.fullmatch(str(resolved)):
        return True
    return resolved.exists() and not (resolved.is_file() or resolved.is_dir())


def _followed(path: Path) -> Path:
    """Where a chain of symlinks ends; an open file descriptor is an end, whatever it stands for."""
    if path == STANDARD_OUTPUT:
        return path
    for _ in range(_MOST_LINKS):
        resolved = Path(os.path.realpath(path.parent)) / path.name
        if _DESCRIPTOR.fullmatch(str(resolved)) or not resolved.is_symlink():
            return resolved
        path = resolved.parent / resolved.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


@contextmanager
def _opened(resolved: Path) -> Iterator[BinaryIO]:
    """The stream, to be written where it stands: nothing in it is cut off."""
    own = _DESCRIPTOR.fullmatch(str(resolved))
    if resolved == STANDARD_OUTPUT:
        sys.stdout.flush()
        try:
            number = os.dup(sys.stdout.fileno())
        except (OSError, ValueError):  # a stand-in that is no file
            yield sys.stdout.buffer
            return
    elif own and own["process"] == str(os.getpid()):
        number = os.dup(int(own["number"]))
    else:
        number = os.open(resolved, os.O_WRONLY | os.O_APPEND)
    with os.fdopen(number, "wb") as stream:
        yield stream
