"""Finds the columns of a table by the words in its header."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Header = tuple[str, ...]
FindHeader = Callable[[Sequence[str]], Header | None]

# Compared without case, spaces and punctuation. Of several pairs in a header, the first holds.
_ENDS = (
    *(("head", "tail"), ("subject", "object"), ("source", "target"), ("from", "to")),
    *(("start", "end"), ("subj", "obj"), ("src", "dst"), ("node1", "node2")),
    *(("headid", "tailid"), ("subjectid", "objectid"), ("sourceid", "targetid")),
    *(("startid", "endid"), ("fromid", "toid")),
)
# Words of later lines are ambiguous, so those of earlier lines are tried first.
RELATION_WORDS = (
    ("relation", "predicate", "property", "relationship", "rel", "edge"),
    ("relationid", "predicateid", "propertyid", "relationtype", "edgetype"),
    ("type", "label", "link"),
)
_LETTERS = (("h", "r", "t"), ("s", "p", "o"))
_LINKED = (
    *(("source", "target"), ("subjectid", "objectid"), ("sourceid", "targetid")),
    *(("left", "right"), ("entity1", "entity2"), ("ent1", "ent2"), ("e1", "e2")),
    *(("entityid1", "entityid2"), ("id1", "id2"), ("leftid", "rightid")),
)
_ENTITY_WORDS = ("entity", "iri", "uri", "id", "entityid", "node", "subject", "source", "key")
_NAME_WORDS = ("name", "label", "title", "text", "translation", "preflabel")
# Triples use these words too: they mean links only if no column is a relation.
_LINKED_ALONE = (("from", "to"), ("subject", "object"), ("src", "dst"), ("head", "tail"))


def triple_header(cells: Sequence[str]) -> Header | None:
    """The columns of head, relation and tail; None if the header is not clear."""
    columns = _columns_by_word(cells)
    found = next((each for each in _LETTERS if set(each) == set(columns)), None)
    if found is None:
        ends = next((each for each in _ENDS if set(each) <= set(columns)), None)
        relation = _relation(columns)
        if ends is None or relation is None:
            return None
        found = (ends[0], relation, ends[1])
    return _columns(cells, columns, found)


def link_header(cells: Sequence[str]) -> Header | None:
    """The columns of source and target; None if the header is not clear."""
    columns = _columns_by_word(cells)
    known = _LINKED if _relation(columns) else (*_LINKED, *_LINKED_ALONE)
    found = next((each for each in known if set(each) <= set(columns)), None)
    return None if found is None else _columns(cells, columns, found)


def name_header(cells: Sequence[str]) -> Header | None:
    """The columns of entity and name; None if the header is not clear."""
    columns = _columns_by_word(cells)
    entity = [word for word in _ENTITY_WORDS if word in columns]
    name = [word for word in _NAME_WORDS if word in columns]
    if not entity or not name:
        return None
    return _columns(cells, columns, (entity[0], name[0]))


def given_header(columns: Sequence[str]) -> FindHeader:
    """Finds the columns that the user has named."""
    return lambda cells: tuple(columns) if set(columns) <= set(cells) else None


def _columns_by_word(cells: Sequence[str]) -> dict[str, list[int]]:
    """Word → the columns of that name."""
    columns: dict[str, list[int]] = {}
    for column, cell in enumerate(cells):
        columns.setdefault(re.sub(r"[\s_:.-]", "", cell).lower(), []).append(column)
    return columns


def _relation(columns: dict[str, list[int]]) -> str | None:
    for words in RELATION_WORDS:
        there = [word for word in words if word in columns]
        if there:
            return there[0] if len(there) == 1 else None
    return None


def _columns(
    cells: Sequence[str], columns: dict[str, list[int]], words: Sequence[str]
) -> Header | None:
    """The words as this header spells them; None if two columns match one word."""
    if any(len(columns[word]) > 1 for word in words):
        return None
    return tuple(cells[columns[word][0]] for word in words)
