"""`NamedGraph`: one side as read, with columns of names turned into integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from clusterea.errors import DataError
from clusterea.types import IntArray, KnowledgeGraph, Names, Texts

DUPLICATES = "repeated triples"
LITERALS = "triples with a literal"
QUOTED = "triples about triples"


@dataclass(frozen=True, slots=True)
class NamedGraph:
    """A graph, the names of its entities and relations, and counts of what was left out."""

    graph: KnowledgeGraph
    entities: Names
    relations: Names
    dropped: Mapping[str, int]  # why → how many triples
    labels: Texts | None = None  # of the entities, if the file has any
    label_properties: frozenset[str] = frozenset()  # those in the file


def with_triples(named: NamedGraph, origin: Path | str) -> NamedGraph:
    """The graph itself; one without triples is an error of the file or argument `origin`."""
    if not named.graph.num_triples:
        left = ", ".join(f"{count:,} {why}" for why, count in named.dropped.items() if count)
        raise DataError(
            origin, f"expected triples between entities, got none ({left or 'nothing'} left out)."
        )
    return named


def from_columns(
    head: pa.ChunkedArray, relation: pa.ChunkedArray, tail: pa.ChunkedArray
) -> NamedGraph:
    """The graph whose triples are the rows of three string columns.

    Ids follow first appearance, row by row, a head before its tail: the same for the same file.
    """
    rows = len(head)
    ends, entities = _codes(pa.chunked_array([*head.chunks, *tail.chunks], type=head.type))
    relation_codes, relations = _codes(relation)
    order = _by_first_appearance(ends[:rows], ends[rows:], len(entities))
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    triples = np.empty((rows, 3), dtype=np.int64)
    triples[:, 0] = number[ends[:rows]]
    triples[:, 1] = relation_codes
    triples[:, 2] = number[ends[rows:]]
    return from_ids(triples, Names(entities.arrow.take(pa.array(order))), relations, {})


def _by_first_appearance(heads: IntArray, tails: IntArray, num_entities: int) -> IntArray:
    """The entities in the order in which they first appear."""
    places = np.arange(2 * len(heads)).reshape(-1, 2)  # of each row's head and tail
    first = np.full(num_entities, 2 * len(heads))
    # Backwards: of several writes to one index the last one stays.
    first[tails[::-1]] = places[::-1, 1]
    by_head = np.full(num_entities, 2 * len(heads))
    by_head[heads[::-1]] = places[::-1, 0]
    return np.argsort(np.minimum(first, by_head))


def from_ids(
    triples: IntArray, entities: Names, relations: Names, dropped: Mapping[str, int]
) -> NamedGraph:
    """The graph of integer triples, without repeated ones."""
    distinct = distinct_rows(triples, (len(entities), len(relations), len(entities)))
    repeats = len(triples) - len(distinct)
    graph = KnowledgeGraph(distinct, len(entities), len(relations))
    return NamedGraph(graph, entities, relations, {**dropped, DUPLICATES: repeats})


def _codes(column: pa.ChunkedArray) -> tuple[IntArray, Names]:
    """A number for each cell, by first appearance, and the name of each number."""
    if pa.types.is_dictionary(column.type):
        return _merged(column.chunks)
    chunks = column.dictionary_encode().chunks
    if not chunks:
        return np.empty(0, dtype=np.int64), Names([])
    # All chunks are encoded with one dictionary; unify_dictionaries() would rebuild it at three
    # times the cost of encoding.
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in chunks])
    return codes.astype(np.int64), Names(chunks[0].dictionary)


def _merged(parts: Sequence[pa.DictionaryArray]) -> tuple[IntArray, Names]:
    """As `_codes`, of columns that are encoded with dictionaries of their own."""
    numbers, names = _codes(pa.chunked_array([part.dictionary for part in parts]))
    ends = np.cumsum([len(part.dictionary) for part in parts])
    of_parts = np.split(numbers, ends[:-1])
    codes = [known[part.indices.to_numpy()] for known, part in zip(of_parts, parts, strict=True)]
    return np.concatenate(codes), names


def distinct_rows(rows: IntArray, sizes: tuple[int, int, int]) -> IntArray:
    """The first of each group of equal rows, in their order; column i lies in [0, sizes[i])."""
    first, second, third = sizes
    if first * second * third >= 2**63:  # one integer can't hold a row
        _, kept = np.unique(rows, axis=0, return_index=True)
        return rows if len(kept) == len(rows) else rows[np.sort(kept)]
    keys = (rows[:, 0] * second + rows[:, 1]) * third + rows[:, 2]
    ordered = np.sort(keys)
    if not (ordered[1:] == ordered[:-1]).any():
        return rows
    kept = np.unique(keys, return_index=True)[1]
    distinct: IntArray = rows[np.sort(kept)]
    return distinct
