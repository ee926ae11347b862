"""The files that one call reads: pipes are copied once, and sizes are bounded.

A pipe can be read only once, but telling a format takes several looks. So a path that is not a
regular file is copied into a temporary folder when it is first opened, and read from there.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TypeVar

from clusterea.errors import STANDARD_INPUT, DataError, InputError, shown_path
from clusterea.types import Pair

DEFAULT_MAX_INPUT_SIZE = 64 << 30
_CHUNK_BYTES = 1 << 20
A = TypeVar("A")
B = TypeVar("B")
_DESCRIPTORS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")  # opened again, they may not start over


@dataclass(frozen=True, slots=True)
class _Inputs:
    """State shared by the readers of one call."""

    max_size: int = DEFAULT_MAX_INPUT_SIZE
    temporary: ExitStack | None = None  # what to delete at the end
    copies: dict[Path, Path] = field(default_factory=dict)
    notes: dict[Path, str] = field(default_factory=dict)


_CURRENT: ContextVar[_Inputs] = ContextVar("inputs", default=_Inputs())  # noqa: B039


@contextmanager
def reading(max_size: int | None = None) -> Iterator[None]:
    """Inside it, pipes can be read and notes are kept. Copies are deleted at its end."""
    with ExitStack() as temporary:
        bound = DEFAULT_MAX_INPUT_SIZE if max_size is None else max_size
        token = _CURRENT.set(_Inputs(bound, temporary))
        try:
            yield
        finally:
            _CURRENT.reset(token)


def both_at_once(read: Callable[[A], B], sides: Pair[A]) -> Pair[B]:
    """What `read` makes of both sides, in a thread each; notes are in the order of the sides."""
    inputs = _CURRENT.get()

    def apart(side: A) -> tuple[B, dict[Path, str]]:
        own: dict[Path, str] = {}
        token = _CURRENT.set(replace(inputs, notes=own))
        try:
            return read(side), own
        finally:
            _CURRENT.reset(token)

    results = sides.map_at_once(apart)
    for _, found in results:
        inputs.notes.update(found)
    return results.map(lambda side: side[0])


def note(path: Path, text: str) -> None:
    """Keeps a note for the user on how a file was read."""
    inputs = _CURRENT.get()
    if inputs.temporary is not None:
        inputs.notes[path] = f"{shown_path(path)}: {text}"


def notes() -> tuple[str, ...]:
    """Notes on how the files were read so far, one sentence each."""
    return tuple(_CURRENT.get().notes.values())


def max_input_size() -> int:
    """The most bytes that an input may have. The threads of Arrow do not know it."""
    return _CURRENT.get().max_size


def check_size(path: Path, size: int, limit: int | None = None) -> None:
    """Raises if an input has more bytes, unpacked, than `limit` or else `max_input_size()`."""
    limit = max_input_size() if limit is None else limit
    if size > limit:
        raise DataError(
            path,
            f"expected at most {limit:,} bytes once unpacked, got more. "
            "Allow more with --max-input-size.",
        )


def refuse_repeated(paths: Iterable[Path]) -> None:
    """Raises if two of the inputs are the same pipe, which can be read only once."""
    seen: dict[tuple[int, int], Path] = {}
    for path in filter(is_stream, paths):
        try:
            status = os.fstat(0) if path == STANDARD_INPUT else path.stat()
        except OSError:
            continue  # said where it is opened
        earlier = seen.setdefault((status.st_dev, status.st_ino), path)
        if earlier is not path:
            first, second = shown_path(earlier), shown_path(path)
            same = f"{first} is given twice" if first == second else f"{first} is also {second}"
            raise InputError(f"{same}, but can be read only once; give a file for one of the two.")


def is_stream(path: Path) -> bool:
    """Whether the path is standard input, a pipe or a device: what can be read only once."""
    if path == STANDARD_INPUT or str(path).startswith(_DESCRIPTORS):
        return True
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def regular_file(path: Path) -> Path:
    """The path itself if it is a regular file, otherwise a copy of its content."""
    if not is_stream(path):
        return path
    inputs = _CURRENT.get()
    if inputs.temporary is None:
        raise RuntimeError(f"{path} is a stream, which can be read inside `reading` only.")
    if path not in inputs.copies:
        inputs.copies[path] = _copy(path, inputs.temporary)
    return inputs.copies[path]


def _copy(path: Path, temporary: ExitStack) -> Path:
    try:
        folder = temporary.enter_context(tempfile.TemporaryDirectory(prefix="clusterea-"))
        copied = Path(folder) / "input"
        file: IO[bytes] = (
            open(0, "rb", closefd=False)  # noqa: SIM115
            if path == STANDARD_INPUT
            else path.open("rb")
        )
        with file, copied.open("wb") as copy:
            while chunk := file.read(_CHUNK_BYTES):
                copy.write(chunk)
                check_size(path, copy.tell())
    except OSError as error:
        raise DataError(
            path,
            f"can't be copied to {tempfile.gettempdir()}: {error.strerror or error}. "
            "TMPDIR names another folder for temporary files.",
        ) from error
    return copied
