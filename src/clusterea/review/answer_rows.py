"""`AnswerRows`: answers as rows of SSSOM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from clusterea.data.decisions import RANDOM, SAYS_NOTHING, UNDONE, UNSURE, valid_date
from clusterea.data.name_iris import NAMESPACES, to_uris
from clusterea.export.curies import curies
from clusterea.export.sssom import PREDICATE, flattened, quoted
from clusterea.types import Answer, Names, Pair, Texts

COLUMNS = (
    *("subject_id", "subject_label", "predicate_id", "predicate_modifier"),
    *("object_id", "object_label", "mapping_justification"),
    *("author_label", "mapping_date", "comment", "other"),
)
JUSTIFICATION = "semapv:ManualMappingCuration"


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One row: the URIs of its entities, None for no term, and the cells of other columns."""

    ids: Pair[str | None]
    cells: dict[str, str]


class AnswerRows:
    """Makes rows of answers about the entities of two graphs."""

    def __init__(self, names: Pair[Names], labels: Pair[Texts] | None = None) -> None:
        self.names = names
        self.labels = labels

    @cached_property
    def uris(self) -> Pair[pa.Array]:
        """The URI of each entity. It depends on all names, so all are made at once."""
        sides = self.names.zip(NAMESPACES)
        return sides.map(lambda side: to_uris(side[0].arrow, side[1]))

    @cached_property
    def curie_map(self) -> dict[str, str]:
        """Prefixes for all entities: seconds for a million of them."""
        return curies(self.uris)[1]

    def of(self, answers: Sequence[Answer]) -> list[AnswerRow]:
        """A row for each answer, whose texts must be `as_written`."""
        authors = _cells(answer.author for answer in answers)
        comments = _cells(answer.comment for answer in answers)
        rows = []
        for answer, author, comment in zip(answers, authors, comments, strict=True):
            entities = Pair(answer.source, answer.target)
            ids = entities.zip(self.uris).map(_id)
            labels = Pair("", "")
            if self.labels is not None:
                labels = entities.zip(self.labels).map(_label)
            cells = {
                "subject_label": labels.source,
                "object_label": labels.target,
                **_statement(answer),
                "mapping_justification": JUSTIFICATION,
                "author_label": author,
                "mapping_date": answer.date,
                "comment": comment,
            }
            rows.append(AnswerRow(ids, cells))
        return rows


def as_written(answer: Answer) -> Answer:
    """The answer as it is read again: texts in one line, and no date that is none."""
    return replace(
        answer,
        author=_in_one_line(answer.author),
        comment=_in_one_line(answer.comment),
        date=valid_date(answer.date),
    )


def _statement(answer: Answer) -> dict[str, str]:
    """The cells that say what the answer is; how they are read: `clusterea.data.decisions`."""
    has_two = answer.source is not None and answer.target is not None
    if answer.verdict == "none" and has_two:
        raise ValueError("the answer 'none' must be about one entity.")
    notes = {"undone": [UNDONE], "unsure": [UNSURE]}.get(answer.verdict, [])
    return {
        "predicate_id": SAYS_NOTHING[0] if notes else PREDICATE,
        "predicate_modifier": "Not" if answer.verdict == "different" else "",
        "other": "|".join([*notes, RANDOM] if answer.is_random else notes),
    }


def _id(side: tuple[int | None, pa.Array]) -> str | None:
    entity, uris = side
    return None if entity is None else uris[entity].as_py()


def _label(side: tuple[int | None, Texts]) -> str:
    entity, labels = side
    first = None if entity is None else labels.first(np.array([entity]))[0].as_py()
    return _cells([_in_one_line(first or "")])[0]


def _in_one_line(text: str) -> str:
    whole = text.encode("utf-8", "replace").decode()  # half a surrogate pair is no character
    return str(flattened(pa.array([whole], pa.large_string()))[0])


def _cells(texts: Iterable[str]) -> list[str]:
    return quoted(pa.array(texts, pa.large_string())).to_pylist()  # type: ignore[no-any-return]
