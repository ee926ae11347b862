"""The bytes of a file of answers: what is whole in it, and what adds rows to it."""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterea.data.delimited import split_rows
from clusterea.data.sssom import REQUIRED, Head, read_head
from clusterea.data.streams import decoded_lines
from clusterea.export.curies import VOCABULARIES, is_prefix, shortener
from clusterea.export.sssom import NO_TERM, head_lines, metadata_of
from clusterea.review.answer_rows import COLUMNS, AnswerRow, AnswerRows

COMMENT = (
    "Answers of people. The last answer to a pair counts. Rows with owl:topObjectProperty assert "
    "nothing: the answer was unsure or undone."
)
_NEEDED = ("mapping_set_id", "license", "subject_source", "object_source")


@dataclass(frozen=True, slots=True)
class Edit:
    """A change to a file: its first `kept` bytes stay, and `added` follows them."""

    kept: int  # 0: the file is new, or has a new head
    added: bytes


def whole_lines(path: Path, data: bytes) -> Iterator[tuple[int, str]]:
    """The lines of a file without a torn last one."""
    head = read_head(path, _lines(path, data))
    return _lines(path, data[: _whole(data, head)])


def edit_to_add(path: Path, data: bytes, rows: Sequence[AnswerRow], maker: AnswerRows) -> Edit:
    """What adds rows to the file at `path`, which contains `data`.

    Rows are added in the columns and by the prefixes that the file has. If it lacks some, all that
    may ever be needed are added, and the file is written anew.
    """
    if not data.strip():
        metadata = metadata_of(uuid.uuid4(), maker.curie_map, COMMENT)
        return Edit(0, _text(metadata, COLUMNS, (), _added(rows, COLUMNS, maker.curie_map)))
    head = read_head(path, _lines(path, data))
    kept = _whole(data, head)
    columns = _with_ours(head.columns)
    added = _added(rows, columns, head.curie_map)
    if added is not None and columns == head.columns:
        line_end = "" if data[:kept].endswith((b"\n", b"\r")) else "\n"
        return Edit(kept, (line_end + added).encode())
    curie_map = _merged(head.curie_map, maker.curie_map, data.decode())
    ours = metadata_of(uuid.uuid4(), curie_map, COMMENT)
    needed = {slot: ours[slot] for slot in _NEEDED}
    metadata = {**needed, **head.metadata, "curie_map": curie_map}
    after_head = (each for each in _lines(path, data[:kept]) if each[0] > head.num_lines)
    split = split_rows(path, after_head, head.columns, delimiter="\t", filled=REQUIRED)
    old = (dict(zip(head.columns, cells, strict=True)) for _, _, cells in split)
    return Edit(0, _text(metadata, columns, old, _added(rows, columns, curie_map)))


def _lines(path: Path, data: bytes) -> Iterator[tuple[int, str]]:
    return decoded_lines(io.BytesIO(data), path)


def _whole(data: bytes, head: Head) -> int:
    """The length without a last line that a killed writer left unfinished.

    A last line without its end counts if it has all cells, for people's editors write such files.
    It can't be torn in a cell that matters, since `other` is the last one in what we write.
    """
    begin = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    return len(data) if data.count(b"\t", begin) == len(head.columns) - 1 else begin


def _with_ours(columns: Sequence[str]) -> list[str]:
    """The columns of a file with those that it lacks; `other` comes last."""
    every = dict.fromkeys((*columns, *COLUMNS))
    every.pop("other")
    return [*every, "other"]


def _added(
    rows: Iterable[AnswerRow], columns: Sequence[str], curie_map: dict[str, str]
) -> str | None:
    """The lines of new rows; None if an id has no prefix."""
    shortened = shortener(curie_map)
    texts = []
    for row in rows:
        subject, object_ = (_curie(uri, shortened) for uri in row.ids)
        if subject is None or object_ is None:
            return None
        texts.append(_line({**row.cells, "subject_id": subject, "object_id": object_}, columns))
    return "".join(texts)


def _curie(uri: str | None, shortened: Callable[[str], str | None]) -> str | None:
    return NO_TERM if uri is None else shortened(uri)


def _text(
    metadata: dict[str, object],
    columns: Sequence[str],
    old: Iterable[dict[str, str]],
    added: str | None,
) -> bytes:
    """A whole file."""
    assert added is not None  # our prefixes are for all entities
    lines = [head_lines(metadata), "\t".join(columns) + "\n"]
    lines += (_line(row, columns) for row in old)
    return "".join([*lines, added]).encode()


def _line(cells: dict[str, str], columns: Sequence[str]) -> str:
    return "\t".join(cells.get(column, "") for column in columns) + "\n"


def _merged(theirs: dict[str, str], ours: dict[str, str], text: str) -> dict[str, str]:
    """Their prefixes and ours; one of ours that the text contains gets another name."""
    merged = {**VOCABULARIES, **theirs}
    usable = {address for prefix, address in merged.items() if is_prefix(prefix)}
    number = 0
    for prefix, address in ours.items():
        if address in usable:
            continue
        free = prefix
        while free in merged or f"{free}:" in text:
            number += 1
            free = f"ns{number}"
        merged[free] = address
    return merged
