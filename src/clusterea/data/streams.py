"""Opens a file that may be compressed, and finds its way around one that can't be read."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from clusterea.errors import DataError

COMPRESSIONS = {
    ".gz": re.compile(rb"\x1f\x8b"),
    ".bz2": re.compile(rb"BZh[1-9]1AY&SY"),
    ".xz": re.compile(rb"\xfd7zXZ\x00"),
}  # how such files begin
UNPACK_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)
_OPENERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
UTF8_BOM = b"\xef\xbb\xbf"
_OTHER_BOMS = (b"\xff\xfe", b"\xfe\xff")


def compression_of(path: Path) -> str | None:
    """The suffix of the file's compression by its first bytes, whatever its name says."""
    with open_plain(path) as file:
        start = file.read(10)
    return next((suffix for suffix, begins in COMPRESSIONS.items() if begins.match(start)), None)


def open_plain(path: Path) -> IO[bytes]:
    """The file as it is, or a `DataError` that says why it can't be opened."""
    if path.is_dir():
        raise DataError(path, "expected a file, got a folder.")
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise DataError(path, "expected a file, but there is none.") from None
    except OSError as error:
        raise DataError(path, f"can't be opened: {error.strerror}.") from error


def open_stream(path: Path) -> IO[bytes]:
    """The file's bytes, unpacked where it is compressed with gzip, bzip2 or xz."""
    suffix = compression_of(path)
    if suffix is None:
        return open_plain(path)
    file: IO[bytes] = _OPENERS[suffix](path)
    return file


def suffix_of(path: Path) -> str:
    """The file's suffix in lower case, the one before `.gz` where it is compressed."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and lines without their ends; raises where the text is not UTF-8.

    One Python step a line: for first lines and for error messages, never for data.
    """
    number = 0
    try:
        with open_stream(path) as file:
            for raw in file:
                if number == 0:
                    if raw.startswith(_OTHER_BOMS):
                        raise DataError(path, "expected UTF-8, got UTF-16.", line=1)
                    raw = raw.removeprefix(UTF8_BOM)  # noqa: PLW2901
                # A lone carriage return ends a line too, as it does for the columnar reader.
                for part in raw.splitlines() or [b""]:
                    number += 1
                    yield number, part.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = error.object[error.start]
        raise DataError(
            path, f"expected UTF-8, got byte 0x{bad:02x} in column {error.start + 1}.", line=number
        ) from None
    except UNPACK_ERRORS as error:
        raise DataError(path, f"can't be unpacked: {error}.") from error


def first_line(path: Path) -> tuple[int, str]:
    """Number and text of the first line that is not blank; raises where there is none."""
    for number, line in text_lines(path):
        if line.strip():
            return number, line
    raise DataError(path, "expected at least one line, got an empty file.")


def first_statement(path: Path) -> str | None:
    """The first line that is neither blank nor a comment, if there is one."""
    lines = (line for _, line in text_lines(path))
    return next((line for line in lines if line.strip() and not line.startswith("#")), None)


def is_parquet(path: Path) -> bool:
    """Whether the file is Parquet, by its first bytes."""
    with open_plain(path) as file:
        return file.read(4) == b"PAR1"
