"""Output files. A regular file is replaced atomically: written under another name, then renamed.

FIFOs, devices and open descriptors (`/dev/stdout`) are written to, never replaced. `-` is standard
output.
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

PART = re.compile(r"-(?P<process>\d+)-[0-9a-f]{8}\.part$")  # names from `part_of`
STANDARD_OUTPUT = Path("-")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DESCRIPTOR = re.compile(r"/proc/(?P<process>[^/]+)(/task/[^/]+)?/fd/(?P<number>\d+)")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_MOST_LINKS = 40  # the system's own limit on symlinks


def part_of(path: Path) -> Path:
    """The temporary name for `path`. A run's folder removes those of killed processes."""
    return path.with_name(f".{path.name}-{os.getpid()}-{uuid.uuid4().hex[:8]}.part")


@contextmanager
def replacing(path: Path, needed: int = 0) -> Iterator[Path]:
    """A temporary file that replaces `path` when the block ends without an error.

    Symlinks are followed. A FIFO or device is not replaced; the finished file is copied into it.

    Args:
        path: The file, FIFO or device; `-`: standard output.
        needed: The size in bytes, if known, for the message about a full disk.

    Raises:
        DataError: The file can't be written.
        BrokenPipeError: The reader of the stream has gone.
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
            with beside.open("rb") as file:  # on disk before it replaces the old file
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


def is_uri(text: str) -> bool:
    """Whether this is a URI, such as `s3://bucket/run`, and no path."""
    return _URI.match(text) is not None


def leads_to_stream(path: Path) -> bool:
    """Whether `path` is a stream: standard output, a FIFO or a device."""
    return _is_stream(_followed(path))


def make_folder(path: Path) -> None:
    """Makes a folder and its parents, if missing; for a dangling symlink, its target."""
    Path(os.path.realpath(path)).mkdir(parents=True, exist_ok=True)


def readable_size(count: int) -> str:
    """A number of bytes for people to read, such as `512 MiB`."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def free_space(path: Path) -> int:
    """The free bytes on the disk of `path`, which need not exist."""
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
    except OSError as error:  # a full device does not mean a full disk
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
    """The final path for a temporary one, which a user knows."""
    names = (
        PART.sub("", part).removeprefix(".") if PART.search(part) else part for part in path.parts
    )
    return Path(*names)


def _is_stream(resolved: Path) -> bool:
    if resolved == STANDARD_OUTPUT or _DESCRIPTOR.fullmatch(str(resolved)):
        return True
    return resolved.exists() and not (resolved.is_file() or resolved.is_dir())


def _followed(path: Path) -> Path:
    """The end of a chain of symlinks; an open file descriptor also ends it."""
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
    """The stream, opened without truncating it."""
    own = _DESCRIPTOR.fullmatch(str(resolved))
    if resolved == STANDARD_OUTPUT:
        sys.stdout.flush()
        try:
            number = os.dup(sys.stdout.fileno())
        except (OSError, ValueError):  # a replacement that is not a file
            yield sys.stdout.buffer
            return
    elif own and own["process"] == str(os.getpid()):
        number = os.dup(int(own["number"]))
    else:
        number = os.open(resolved, os.O_WRONLY | os.O_APPEND)
    with os.fdopen(number, "wb") as stream:
        yield stream
