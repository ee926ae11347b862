"""`NamedGraph`: one side as read, with columns of names turned into integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from clusterea.data.numbered import numbered
from clusterea.data.sorted_keys import first_places, has_repeats
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
    triples = np.empty((len(head), 3), dtype=np.int64)
    entities = numbered([head, tail], [triples[:, 0], triples[:, 2]])
    relations = numbered([relation], [triples[:, 1]])
    return from_ids(triples, entities, relations, {})


def from_ids(
    triples: IntArray, entities: Names, relations: Names, dropped: Mapping[str, int]
) -> NamedGraph:
    """The graph of integer triples, without repeated ones."""
    distinct = distinct_rows(triples, (len(entities), len(relations), len(entities)))
    repeats = len(triples) - len(distinct)
    graph = KnowledgeGraph(distinct, len(entities), len(relations))
    return NamedGraph(graph, entities, relations, {**dropped, DUPLICATES: repeats})


def distinct_rows(rows: IntArray, sizes: tuple[int, int, int]) -> IntArray:
    """The first of each group of equal rows, in their order; column i lies in [0, sizes[i])."""
    first, second, third = sizes
    if first * second * third >= 2**63:  # one integer can't hold a row
        _, kept = np.unique(rows, axis=0, return_index=True)
        return rows if len(kept) == len(rows) else rows[np.sort(kept)]
    keys = (rows[:, 0] * second + rows[:, 1]) * third + rows[:, 2]
    if not has_repeats(keys):
        return rows
    distinct: IntArray = rows[first_places(keys)]
    return distinct
