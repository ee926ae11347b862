"""Opens files that may be compressed, and explains why a file can't be read."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import IO, Any

import pyarrow as pa

from clusterea.data.inputs import check_size, max_input_size, regular_file
from clusterea.errors import DataError, cut

COMPRESSIONS = {
    ".gz": re.compile(rb"\x1f\x8b"),
    ".bz2": re.compile(rb"BZh[1-9]1AY&SY"),
    ".xz": re.compile(rb"\xfd7zXZ\x00"),
    ".zst": re.compile(rb"\x28\xb5\x2f\xfd"),
    ".zip": re.compile(rb"PK\x03\x04"),
}  # the first bytes of such files
UNPACK_ERRORS = (
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    pa.ArrowException,
)
UTF8_BOM = b"\xef\xbb\xbf"
_OTHER_BOMS = (b"\xff\xfe", b"\xfe\xff")
_BUFFER_BYTES = 1 << 20
LONGEST_LINE = 8 << 20  # bytes of text that is read by lines


def compression_of(path: Path) -> str | None:
    """The suffix of the file's compression by its first bytes, whatever its name says."""
    with open_plain(path) as file:
        start = file.read(10)
    return next((suffix for suffix, begins in COMPRESSIONS.items() if begins.match(start)), None)


def open_plain(path: Path) -> io.BufferedReader:
    """The open file. A `DataError` says why it can't be opened."""
    regular = regular_file(path)
    if regular.is_dir():
        raise DataError(path, "expected a file, got a folder.")
    try:
        check_size(path, regular.stat().st_size)
        return regular.open("rb")
    except FileNotFoundError:
        raise DataError(path, "expected a file, but there is none.") from None
    except OSError as error:
        raise DataError(path, f"can't be opened: {error.strerror}.") from error


def open_stream(path: Path) -> io.BufferedReader:
    """The file's bytes, unpacked if it is compressed. More than allowed are an error."""
    suffix = compression_of(path)
    if suffix is None:
        return open_plain(path)
    try:
        unpacked = _OPENERS[suffix](regular_file(path))
    except UNPACK_ERRORS as error:
        raise DataError(path, f"can't be unpacked: {cut(error)}.") from error
    return io.BufferedReader(_Unpacked(unpacked, path), _BUFFER_BYTES)


class _Unpacked(io.RawIOBase):
    """Bytes from a decompressor, counted: a small file may unpack to more than any disk holds."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file = file
        self._path = path
        self._count = 0
        self._limit = max_input_size()  # now: Arrow reads in a thread that does not know it

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        self._count += len(data)
        check_size(self._path, self._count, self._limit)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def _open_zstd(regular: Path) -> Any:
    return pa.CompressedInputStream(pa.OSFile(str(regular)), "zstd")


def _open_zip(regular: Path) -> Any:
    try:
        archive = zipfile.ZipFile(regular)
        return archive.open(_only_member(archive))
    except (RuntimeError, ValueError) as error:  # a password, an unknown compression, bad offsets
        raise zipfile.BadZipFile(str(error)) from error


def _only_member(archive: zipfile.ZipFile) -> str:
    """The name of the one file in the archive."""
    # macOS puts a file's attributes beside it, in a folder of its own.
    names = [each.filename for each in archive.infolist() if not each.is_dir()]
    names = [name for name in names if not name.startswith("__MACOSX/")]
    if len(names) != 1:
        listed = f": {', '.join(names)}; unpack it, and give one of them" if names else ""
        raise zipfile.BadZipFile(f"expected one file in it, got {len(names):,}{listed}")
    return names[0]


_OPENERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstd,
    ".zip": _open_zip,
}


def suffix_of(path: Path) -> str:
    """The file's suffix in lower case, the one before `.gz` where it is compressed.

    Where a zip archive's name has none, it is that of the file in it.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = False
    while suffixes and suffixes[-1] in COMPRESSIONS:
        packed |= suffixes.pop() == ".zip"
    if packed and not suffixes and compression_of(path) == ".zip":
        try:
            with _open_zip(regular_file(path)) as member:
                suffixes = [PurePath(member.name).suffix.lower()]
        except UNPACK_ERRORS as error:
            raise DataError(path, f"can't be unpacked: {cut(error)}.") from error
    return suffixes[-1] if suffixes else ""


def text_lines(path: Path, *, cut_long: bool = False) -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and lines without their ends; raises where the text is not UTF-8.

    A line that is too long is an error, or else `cut_long`. One Python step a line: for first
    lines, for error messages and for answers of people, never for links or triples.
    """
    try:
        with open_stream(path) as file:
            yield from decoded_lines(file, path, cut_long=cut_long)
    except UNPACK_ERRORS as error:
        raise DataError(path, f"can't be unpacked: {cut(error)}.") from error


def decoded_lines(
    file: IO[bytes], path: Path, *, cut_long: bool = False
) -> Iterator[tuple[int, str]]:
    """As `text_lines`, of an open file."""
    number = 0
    try:
        while raw := file.readline(LONGEST_LINE):
            if len(raw) == LONGEST_LINE and not raw.endswith(b"\n"):
                if not cut_long:
                    problem = f"expected lines of less than {LONGEST_LINE:,} bytes, got more."
                    raise DataError(path, problem, line=number + 1)
                yield number + 1, raw.decode("utf-8", "ignore")
                return
            if number == 0:
                refuse_utf16(raw, path)
                raw = raw.removeprefix(UTF8_BOM)
            # A lone carriage return ends a line too, as it does for the columnar reader.
            for part in raw.splitlines() or [b""]:
                number += 1
                yield number, part.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = error.object[error.start]
        raise DataError(
            path, f"expected UTF-8, got byte 0x{bad:02x} in column {error.start + 1}.", line=number
        ) from None


def refuse_utf16(start: bytes, path: Path) -> None:
    """Raises if the first bytes are the byte-order mark of UTF-16."""
    if start.startswith(_OTHER_BOMS):
        raise DataError(path, "expected UTF-8, got UTF-16.", line=1)


def first_line(path: Path) -> tuple[int, str]:
    """Number and text of the first line that is not blank. Raises if there is none."""
    for number, line in text_lines(path, cut_long=True):
        if line.strip():
            return number, line
    raise DataError(path, "expected at least one line, got an empty file.")


def first_statement(path: Path) -> str | None:
    """The first line that is neither blank nor a comment, if there is one."""
    lines = (line for _, line in text_lines(path, cut_long=True))
    return next((line for line in lines if line.strip() and not line.startswith("#")), None)


def first_bytes(path: Path, count: int) -> bytes:
    """The first bytes of the file, unpacked, without a byte-order mark."""
    try:
        with open_stream(path) as file:
            return file.read(count).removeprefix(UTF8_BOM)
    except UNPACK_ERRORS as error:
        raise DataError(path, f"can't be unpacked: {cut(error)}.") from error


def is_parquet(path: Path) -> bool:
    """Whether the file is Parquet, by its first bytes."""
    with open_plain(path) as file:
        return file.read(4) == b"PAR1"
