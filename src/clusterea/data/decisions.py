"""Reads answers of people about pairs of entities, from SSSOM or from three columns of text.

In SSSOM, an equivalence says that two entities are the same; with `predicate_modifier: Not`, that
they are different. An equivalence to or from `sssom:NoTermFound` says that the other entity has no
counterpart. Close matches and other predicates say neither.

The answers `unsure` and `undone` have the predicate `owl:topObjectProperty`. It relates every two
things, so such a row asserts nothing, and other tools take no mapping from it. The slot `other`
tells the two apart: `answer=undone`. There, `asked=random` marks the answers to questions of the
random share.

Rows keep their order, because the last answer to a pair counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa

from clusterea.data.delimited import split_rows
from clusterea.data.equivalences import CLOSE_MATCH, EQUIVALENCES
from clusterea.data.headers import link_header
from clusterea.data.links import nothing_known
from clusterea.data.name_iris import to_names
from clusterea.data.sssom import (
    NO_TERM,
    REQUIRED,
    find_among,
    is_sssom,
    read_head,
    spellings,
    unquoted,
)
from clusterea.data.streams import text_lines
from clusterea.errors import DataError, cut
from clusterea.types import Answer, IntArray, Names, Pair
from clusterea.types.decisions import Verdict

Lines = Iterator[tuple[int, str]]  # numbers from 1, and texts

SAYS_NOTHING = ("owl:topObjectProperty", "http://www.w3.org/2002/07/owl#topObjectProperty")
UNDONE, UNSURE, RANDOM = "answer=undone", "answer=unsure", "asked=random"  # in the slot `other`
_SAME = [text for pair in EQUIVALENCES.items() if CLOSE_MATCH not in pair for text in pair]
_USED = (*SAYS_NOTHING, *_SAME)
_WORDS: dict[str, Verdict] = {"same": "same", "different": "different"}
_COLUMNS = ("source", "target", "answer")


@dataclass(frozen=True, slots=True)
class ReadAnswers:
    """The answers in a file, and how many of its rows are none."""

    answers: list[Answer]  # in file order
    unknown: int = 0  # rows with entities that are not in the graphs
    other: int = 0  # rows whose predicate says nothing about sameness


@dataclass(frozen=True, slots=True)
class _Said:
    """What a row says of the entities that it names."""

    verdict: Verdict
    author: str = ""
    date: str = ""
    comment: str = ""
    is_random: bool = False
    has_source: bool = True  # the row names an entity of the source graph
    has_target: bool = True

    def about(self, source: int, target: int) -> Answer | None:
        """The answer about these entities; None if the row names one that is unknown (-1)."""
        if (self.has_source and source < 0) or (self.has_target and target < 0):
            return None
        return Answer(
            source if self.has_source else None,
            target if self.has_target else None,
            self.verdict,
            self.author,
            self.date,
            self.comment,
            self.is_random,
        )


def read_answers(path: Path, names: Pair[Names]) -> ReadAnswers:
    """The answers in an SSSOM file, or in TSV of three columns: source, target, same|different.

    Raises:
        DataError: The file can't be read, or all its entities are unknown.
    """
    read = read_mapped_answers if is_sssom(path) else _read_table
    return read(path, text_lines(path), names)


def read_mapped_answers(path: Path, lines: Lines, names: Pair[Names]) -> ReadAnswers:
    """The answers in the lines of an SSSOM file. `path` is for messages only."""
    head = read_head(path, lines)
    split = split_rows(path, lines, head.columns, delimiter="\t", filled=REQUIRED)
    rows = [dict(zip(head.columns, cells, strict=True)) for _, _, cells in split]

    def spelled(name: str) -> list[pa.ChunkedArray]:
        return spellings(_column([row[name] for row in rows]), head.curie_map)

    predicates = find_among(_USED, spelled("predicate_id")).to_pylist()
    said = [_said(row, predicate) for row, predicate in zip(rows, predicates, strict=True)]
    return _found(path, Pair(spelled("subject_id"), spelled("object_id")), said, names)


def valid_date(text: str) -> str:
    """The text if it is a date as 2026-01-31; otherwise nothing."""
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return ""


def _said(row: dict[str, str], predicate: int | None) -> _Said | None:
    """What a mapping says; None if it says nothing that an answer can."""
    named = row["subject_id"] not in NO_TERM, row["object_id"] not in NO_TERM
    is_negated = row.get("predicate_modifier") == "Not"
    if predicate is None or not any(named) or (is_negated and not all(named)):
        return None
    notes = [note.strip() for note in unquoted(row.get("other", "")).split("|")]
    verdict: Verdict
    if predicate < len(SAYS_NOTHING):
        if is_negated:
            return None
        verdict = "undone" if UNDONE in notes else "unsure"
    elif not all(named):
        verdict = "none"
    else:
        verdict = "different" if is_negated else "same"
    return _Said(
        verdict,
        unquoted(row.get("author_label") or row.get("author_id", "")),
        valid_date(row.get("mapping_date", "")),
        unquoted(row.get("comment", "")),
        RANDOM in notes,
        *named,
    )


def _read_table(path: Path, lines: Lines, names: Pair[Names]) -> ReadAnswers:
    """The answers in three columns of text, with or without a header."""
    hint = "Give source, target, and same or different."
    rows = split_rows(path, lines, _COLUMNS, delimiter="\t", filled=_COLUMNS[:2], hint=hint)
    at = (0, 1, 2)  # the columns of source, target and answer
    ends: Pair[list[str]] = Pair([], [])
    said: list[_Said | None] = []
    for row, (number, _, cells) in enumerate(rows):
        word = cells[at[2]].strip().lower()
        header = link_header(cells) if row == 0 and word not in _WORDS else None
        if header is not None:
            source, target = map(cells.index, header)
            at = source, target, 3 - source - target
            continue
        if not word:  # a question that was not answered
            continue
        if word not in _WORDS:
            got = cut(repr(cells[at[2]]))
            raise DataError(path, f"expected same or different, got {got}.", line=number)
        ends.source.append(cells[at[0]])
        ends.target.append(cells[at[1]])
        said.append(_Said(_WORDS[word]))
    if not said:
        raise DataError(path, "expected answers, got none.")
    return _found(path, ends.map(lambda side: [to_names(_column(side))]), said, names)


def _found(
    path: Path,
    spelled: Pair[list[pa.ChunkedArray]],
    said: Sequence[_Said | None],
    names: Pair[Names],
) -> ReadAnswers:
    """The answers of the rows whose entities are in the graphs."""
    source, target = (ids.tolist() for ids in spelled.zip(names).map(_ids))
    rows = zip(source, target, said, strict=True)
    stated = [each.about(*ends) for *ends, each in rows if each is not None]
    answers = [answer for answer in stated if answer is not None]
    used = pa.array([each is not None for each in said], pa.bool_())
    num_used = sum(each is not None for each in said)
    if num_used and not answers:
        written = spelled.map(lambda side: side[0].filter(used))
        raise DataError(path, nothing_known("answers about", written, names))
    return ReadAnswers(answers, num_used - len(answers), len(said) - num_used)


def _ids(side: tuple[list[pa.ChunkedArray], Names]) -> IntArray:
    """The id of each entity by the first of its spellings that is known; otherwise -1."""
    spelled, names = side
    ids = np.full(len(spelled[0]), -1, dtype=np.int64)
    for each in spelled:
        ids = np.where(ids < 0, names.ids_of(each), ids)
    return ids


def _column(texts: list[str]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(texts, pa.large_string())])
