"""`DecisionLog`: the answers of a run, in a file that several processes may add to.

An answer is in the file, and on the disk, before `append` returns. The kernel's lock (`flock`) lets
one process at a time write. A line that a killed process left unfinished is ignored, and removed
by the next one that writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, flock
from io import FileIO
from pathlib import Path
from typing import TypeAlias

from clusterea.data.decisions import read_mapped_answers
from clusterea.errors import DataError
from clusterea.files import replacing
from clusterea.review.answer_rows import AnswerRows, as_written
from clusterea.review.log_text import Edit, edit_to_add, whole_lines
from clusterea.run_lock import is_at
from clusterea.types import Answer, Decisions, Names, Pair, Texts

_Stamp: TypeAlias = tuple[int, int, int]  # inode, size and time of a version of the file


class DecisionLog:
    """The answers in the SSSOM file at `path`, which need not exist yet.

    Labels, if given, stand beside the ids, for people who open the file.
    """

    def __init__(self, path: Path, names: Pair[Names], labels: Pair[Texts] | None = None) -> None:
        self.path = path
        self._names = names
        self._rows = AnswerRows(names, labels)
        self._read: tuple[_Stamp, list[Answer]] | None = None

    def prepare(self) -> None:
        """Makes what the first answer needs and is slow, so that it is not slower than others."""
        _ = self._rows.curie_map

    @property
    def answers(self) -> list[Answer]:
        """All answers, the oldest first. The file is read again only if it has changed."""
        try:
            stamp = _stamp(self.path.stat())
            if self._read is None or self._read[0] != stamp:
                self._read = stamp, self._parsed(self.path.read_bytes())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise DataError(self.path, f"can't be read: {error.strerror or error}.") from error
        return list(self._read[1])

    @property
    def decisions(self) -> Decisions:
        """What holds after all answers."""
        return Decisions.of(self.answers)

    def append(self, *answers: Answer) -> None:
        """Adds answers to the file.

        Raises:
            DataError: The file can't be written, or is not SSSOM.
        """
        if not answers:
            return
        written = [as_written(answer) for answer in answers]
        rows = self._rows.of(written)
        try:
            with _locked(self.path) as file:
                before = _stamp(os.fstat(file.fileno()))
                edit = edit_to_add(self.path, _content(file), rows, self._rows)
                if not edit.kept:
                    with replacing(self.path) as new:
                        new.write_bytes(edit.added)
                    return
                _extend(file, edit)
                read = self._read
                if read is not None and read[0] == before:  # nobody else has added any
                    self._read = _stamp(os.fstat(file.fileno())), [*read[1], *written]
        except OSError as error:
            raise DataError(self.path, f"can't be written: {error.strerror or error}.") from error

    def _parsed(self, data: bytes) -> list[Answer]:
        if not data.strip():
            return []
        return read_mapped_answers(self.path, whole_lines(self.path, data), self._names).answers


@contextmanager
def _locked(path: Path) -> Iterator[FileIO]:
    """The file, open for appending, while no other process may write."""
    while True:
        with path.open("a+b", buffering=0) as file:
            with suppress(OSError):  # a file system without locks
                flock(file, LOCK_EX)
            # Another process may have replaced the file while this one waited.
            if is_at(path, file.fileno()):
                yield file
                return


def _content(file: FileIO) -> bytes:
    file.seek(0)
    return file.readall()


def _extend(file: FileIO, edit: Edit) -> None:
    """Adds to the file in one call, so that a killed process leaves all or a torn line."""
    try:
        os.ftruncate(file.fileno(), edit.kept)
        rest = memoryview(edit.added)
        while rest:  # once, unless the disk is full
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            os.ftruncate(file.fileno(), edit.kept)
        raise


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_ino, status.st_size, status.st_mtime_ns
