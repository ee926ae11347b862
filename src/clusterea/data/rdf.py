"""Reads RDF in each of its syntaxes, through pyoxigraph."""

from __future__ import annotations

import io
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from clusterea.data.equivalences import CLOSE_MATCH, EQUIVALENCES, LISTED
from clusterea.data.hostile_rdf import guarded
from clusterea.data.label_properties import LabelCollector
from clusterea.data.named_graph import LITERALS, QUOTED, NamedGraph, from_columns
from clusterea.data.streams import UNPACK_ERRORS, UTF8_BOM, open_stream, refuse_utf16
from clusterea.errors import DataError, cut
from clusterea.types import Pair

SYNTAXES = {
    "ntriples": "N_TRIPLES",
    "turtle": "TURTLE",
    "rdfxml": "RDF_XML",
    "nquads": "N_QUADS",
    "trig": "TRIG",
    "n3": "N3",
    "jsonld": "JSON_LD",
}
# Of the Alignment API, which the OAEI uses. Many files leave out the `#` that ends it.
ALIGNMENT = "http://knowledgeweb.semanticweb.org/heterogeneity/alignment"
CELL = "cells of the Alignment API"


def read_rdf(path: Path, format_name: str, label_properties: Sequence[str] = ()) -> NamedGraph:
    """The file's triples between resources, and the labels of its entities."""
    statements = _statements(path, format_name)
    return from_statements(
        statements, path, keep_ids=format_name == "ntriples", label_properties=label_properties
    )


def from_statements(
    statements: Iterable[Any],
    path: Path,
    *,
    keep_ids: bool,
    label_properties: Sequence[str] = (),
) -> NamedGraph:
    """The graph of pyoxigraph's statements."""
    found = Statements(keep_ids=keep_ids, label_properties=label_properties)
    found.add(statements)
    return found.graph(path)


class Statements:
    """Triples between resources; literals are no triples, but may be labels.

    An IRI is named by itself, without its angle brackets. A blank node of N-Triples keeps its
    id; elsewhere the parser may make ids up, so there they are numbered as they appear.
    """

    def __init__(self, *, keep_ids: bool, label_properties: Sequence[str] = ()) -> None:
        self.labels = LabelCollector(label_properties)
        self._keep_ids = keep_ids
        self._entities: dict[str, int] = {}
        self._relations: dict[str, int] = {}
        self._blanks: dict[str, str] = {}
        self._columns = array("i"), array("i"), array("i")
        self._literals = self._quoted = 0

    def add(self, statements: Iterable[Any]) -> None:
        """Adds statements of pyoxigraph."""
        from pyoxigraph import BlankNode, Literal, NamedNode

        entities, relations, blanks = self._entities, self._relations, self._blanks
        heads, predicates, tails = self._columns

        def entity(node: Any) -> int:
            name = node.value
            if type(node) is BlankNode:
                new = f"_:b{len(blanks)}"
                name = f"_:{name}" if self._keep_ids else blanks.setdefault(name, new)
            return entities.setdefault(name, len(entities))

        for subject, predicate, value, _ in statements:
            if type(value) is Literal:
                self._literals += 1
                if type(subject) is NamedNode:
                    self.labels.offer(subject.value, predicate.value, value)
            elif type(subject) is NamedNode and type(value) is NamedNode:  # nearly always
                heads.append(entities.setdefault(subject.value, len(entities)))
                predicates.append(relations.setdefault(predicate.value, len(relations)))
                tails.append(entities.setdefault(value.value, len(entities)))
            elif type(subject) in (NamedNode, BlankNode) and type(value) in (NamedNode, BlankNode):
                heads.append(entity(subject))
                predicates.append(relations.setdefault(predicate.value, len(relations)))
                tails.append(entity(value))
            else:
                self._quoted += 1

    def graph(
        self, path: Path, further: Sequence[TripleColumns] = (), literals: int = 0
    ) -> NamedGraph:
        """The graph of these triples and further ones.

        Args:
            path: The file.
            further: Triples that come first.
            literals: Further triples with a literal.
        """
        literals += self._literals
        own = TripleColumns(
            *(
                pa.DictionaryArray.from_arrays(
                    pa.array(np.frombuffer(column, dtype=np.int32)),
                    pa.array(names, pa.large_string()),
                )
                for column, names in zip(
                    self._columns, (self._entities, self._relations, self._entities), strict=True
                )
            )
        )
        columns = [pa.chunked_array(parts) for parts in zip(*further, own, strict=True)]
        if not len(columns[0]) and not literals and not self._quoted:
            raise DataError(path, "expected RDF triples, got none.")
        named = from_columns(*columns)
        return replace(
            named,
            dropped={LITERALS: literals, QUOTED: self._quoted, **named.dropped},
            labels=self.labels.texts(named.entities),
            label_properties=self.labels.found(),
        )


class TripleColumns(NamedTuple):
    """The names of triples."""

    heads: pa.DictionaryArray
    relations: pa.DictionaryArray
    tails: pa.DictionaryArray


def read_equivalences(
    path: Path, format_name: str
) -> tuple[Pair[pa.ChunkedArray], int, Counter[str]]:
    """The two IRIs of each link, the number of other statements, and the links by predicate.

    Links are triples of a predicate in `EQUIVALENCES`, close matches last, and the cells of an
    Alignment API file whose relation is `=`.
    """
    from pyoxigraph import NamedNode, Triple

    stated: list[tuple[str, str, str]] = []
    cells: dict[str, dict[str, str]] = {}
    others = 0
    for subject, predicate, value, _ in _statements(path, format_name):
        named = type(subject) is NamedNode and type(value) is NamedNode
        if named and predicate.value in EQUIVALENCES:
            stated.append((predicate.value, subject.value, value.value))
        elif predicate.value.startswith(ALIGNMENT):
            part = predicate.value.removeprefix(ALIGNMENT).removeprefix("#")
            is_node = type(subject) is not Triple and type(value) is not Triple
            if is_node and part in ("entity1", "entity2", "relation"):
                cells.setdefault(subject.value, {})[part] = value.value
        elif not cells:  # other statements of such a file are not meant as links
            others += 1
    for cell in cells.values():
        if cell.get("relation", "=") == "=" and {"entity1", "entity2"} <= set(cell):
            stated.append((CELL, cell["entity1"], cell["entity2"]))
        else:
            others += 1
    if not stated:
        raise DataError(
            path, f"expected links by {LISTED}; got none ({others:,} other statements)."
        )
    stated.sort(key=lambda link: link[0] == CLOSE_MATCH)
    predicates, subjects, objects = zip(*stated, strict=True)
    columns = Pair(subjects, objects).map(
        lambda names: pa.chunked_array([names], type=pa.large_string())
    )
    return columns, others, Counter(EQUIVALENCES.get(each, each) for each in predicates)


def _statements(path: Path, format_name: str) -> Iterator[Any]:
    """The file's statements as (subject, predicate, object, graph), of all its graphs."""
    with open_stream(path) as file:
        try:
            start = file.peek(len(UTF8_BOM))
            refuse_utf16(start, path)
            if start.startswith(UTF8_BOM):
                file.read(len(UTF8_BOM))
            yield from parsed(file, path, format_name)
        except SyntaxError as error:
            told = re.sub(r"(Parser error)?\s*\bat line \d+[^:]*:?", "", str(error.msg))
            problem = told.strip(".: ")
            if "remote context" in problem:  # JSON-LD's; nothing is fetched from a network
                problem = "its @context is an address; put the context itself into the file"
            raise DataError(
                path, f"expected {format_name}, but: {cut(problem)}.", line=error.lineno
            ) from error
        except UNPACK_ERRORS as error:
            raise DataError(path, f"can't be unpacked: {cut(error)}.") from error


def parsed(file: io.BufferedReader[Any], path: Path, format_name: str) -> Iterator[Any]:
    """The statements of an open file."""
    import pyoxigraph

    syntax = getattr(pyoxigraph.RdfFormat, SYNTAXES[format_name])
    content = guarded(file, path, format_name)
    # With a base, relative IRIs are accepted; files saved from the web have them.
    yield from pyoxigraph.parse(content, format=syntax, base_iri="file:///")
