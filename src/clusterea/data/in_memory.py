"""Graphs and links that the caller holds in memory: tables, rows, networkx and rdflib graphs.

None of these libraries is imported here. A value is recognized by its type, so whoever has one has
its library too.
"""

from __future__ import annotations

import os
import re
import reprlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clusterea.data.headers import (
    RELATION_WORDS,
    FindHeader,
    given_header,
    link_header,
    name_header,
    triple_header,
)
from clusterea.data.links import LINK_COLUMNS, NamedLinks
from clusterea.data.name_iris import to_names
from clusterea.data.named_graph import NamedGraph, from_columns, with_triples
from clusterea.data.rdf import from_statements
from clusterea.data.tables import TRIPLE_COLUMNS, string_column
from clusterea.errors import DataError, cut
from clusterea.types import Pair

Name: TypeAlias = str | int
PathLike: TypeAlias = str | os.PathLike[str]


class ArrowTable(Protocol):
    """A table that Arrow can read: of pandas, polars, pyarrow and others."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class NetworkXGraph(Protocol):
    """A graph of networkx, directed or not, with one edge between two nodes or several."""

    def is_multigraph(self) -> bool: ...
    def is_directed(self) -> bool: ...


class RdflibGraph(Protocol):
    """A graph of rdflib."""

    def triples(self, triple: Any, /) -> Any: ...
    def serialize(self) -> Any: ...


GraphSource: TypeAlias = (
    PathLike
    | ArrowTable
    | NetworkXGraph
    | RdflibGraph
    | NDArray[Any]
    | Iterable[tuple[Name, Name, Name]]
)
LinkSource: TypeAlias = (
    PathLike | ArrowTable | NDArray[Any] | Mapping[Any, Any] | Iterable[tuple[Name, Name]]
)

RELATION = "edge"  # of networkx edges that name none
_ATTRIBUTES = tuple(word for words in RELATION_WORDS for word in words)
_UNNAMED = re.compile(r"(column_?)?\d+")  # what pandas and polars call columns without a name


def is_path(value: object) -> TypeGuard[PathLike]:
    """Whether the value names a file or a folder."""
    return isinstance(value, (str, os.PathLike))


def is_rdf(value: object) -> bool:
    """Whether the value is a graph of rdflib."""
    return "rdflib" in _libraries(value)


def graph_in_memory(
    value: object,
    argument: str,
    columns: Sequence[str] | None = None,
    label_properties: Sequence[str] = (),
) -> NamedGraph:
    """The graph that the caller gave as `argument`, from any supported library.

    Args:
        value: A table, rows of three names, or a graph of networkx or rdflib.
        argument: What errors call it.
        columns: The columns of a table that are head, relation and tail.
        label_properties: Of an rdflib graph, beside the usual ones.
    """
    if columns is not None and not _is_table(value):
        raise DataError(argument, f"--columns goes with a table; got {_kind(value)}.")
    if is_rdf(value):
        statements = _rdf_statements(value, argument)
        return with_triples(
            from_statements(
                statements, Path(argument), keep_ids=False, label_properties=label_properties
            ),
            argument,
        )
    if "networkx" in _libraries(value):
        cells = _cells(_edges(value), TRIPLE_COLUMNS, argument)
    elif _is_table(value):
        find = given_header(columns) if columns else triple_header
        hint = "" if columns else " Name yours with --columns."
        cells = _table_columns(value, find, columns or TRIPLE_COLUMNS, argument, hint)
    else:
        wanted = "a path, a table, rows of head, relation and tail, a networkx or an rdflib graph"
        cells = _cells(_rows(value, argument, wanted), TRIPLE_COLUMNS, argument)
    return with_triples(from_columns(*cells), argument)


def links_in_memory(value: object, argument: str) -> NamedLinks:
    """The links that the caller gave as `argument`: a table, a mapping or rows of two names."""
    if _is_table(value):
        cells = _table_columns(value, link_header, LINK_COLUMNS, argument, " Rename yours.")
    else:
        rows = value.items() if isinstance(value, Mapping) else value
        wanted = "a path, a table, a dict of source to target, or rows of source and target"
        cells = _cells(_rows(rows, argument, wanted), LINK_COLUMNS, argument)
    if not len(cells[0]):
        raise DataError(argument, "expected links, got none.")
    return NamedLinks(Path(argument), (Pair(*cells).map(to_names),))


def names_in_memory(value: object, argument: str) -> list[pa.Array]:
    """Entities and their names: a table, a mapping of entity to name, or rows of the two."""
    wanted = ("entity", "name")
    if _is_table(value):
        cells = _table_columns(value, name_header, wanted, argument, " Rename yours.")
    else:
        rows = value.items() if isinstance(value, Mapping) else value
        what = "a path, a table, a dict of entity to name, or rows of entity and name"
        cells = _cells(_rows(rows, argument, what), wanted, argument)
    if not len(cells[0]):
        raise DataError(argument, "expected names, got none.")
    return [column.combine_chunks() for column in cells]


def _libraries(value: object) -> set[str]:
    """The packages that the value's type and its bases come from."""
    return {each.__module__.partition(".")[0] for each in type(value).__mro__}


def _kind(value: object) -> str:
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__.partition('.')[0]}."
    return f"{module}{kind.__qualname__}"


def _is_table(value: object) -> bool:
    if "pandas" in _libraries(value):
        return hasattr(value, "columns")  # before pandas 2.2 there was no Arrow stream
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")


def _table_columns(
    table: Any, find_header: FindHeader, wanted: Sequence[str], argument: str, hint: str
) -> list[pa.ChunkedArray]:
    """The columns that `find_header` finds, or all if their number is as `wanted`, as strings."""
    if "pandas" in _libraries(table):
        labels = list(table.columns)
    else:
        try:
            table = pa.table(table)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise DataError(argument, f"expected a table, got {_kind(table)}: {error}") from error
        labels = table.column_names
    names = [str(label) for label in labels]
    found = find_header(names)
    if found is None and len(names) == len(wanted) and all(map(_UNNAMED.fullmatch, names)):
        found = tuple(names)
    if found is None or len(set(names)) < len(names):
        columns = ", ".join(wanted)
        raise DataError(
            argument, f"expected the columns {columns}; got {cut(', '.join(names))}.{hint}"
        )
    return [_filled(table[labels[names.index(name)]], name, argument) for name in found]


def _filled(column: Any, name: str, argument: str) -> pa.ChunkedArray:
    """One column of a table as strings; a missing value is an error with its row."""
    if not len(column):  # an empty column may have any type
        return pa.chunked_array([], pa.large_string())
    if str(getattr(column, "dtype", "")) == "object":  # of pandas: anything may be in it
        return _strings(column.tolist(), name, argument)
    if not isinstance(column, pa.ChunkedArray):
        column = pa.array(column, from_pandas=True)
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        raise DataError(argument, f"expected a {name}, got a missing value in {_row(row)}.")
    kind = column.type
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
        # Arrow can't read such a dictionary, which polars uses for categories.
        kind = pa.large_string()
        chunks = [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in chunks]
    try:
        return string_column(argument, name, pa.chunked_array(chunks, kind))
    except pa.ArrowException as error:  # bytes that are no UTF-8
        raise DataError(argument, f"expected a {name} in Unicode: {cut(error)}.") from error


def _row(number: int) -> str:
    return f"row {number + 1:,} (the first is row 1)"


def _rows(value: Any, argument: str, wanted: str) -> Iterable[Any]:
    is_number = isinstance(value, np.ndarray) and not value.ndim  # such an array can't be iterated
    if is_number or isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise DataError(argument, f"expected {wanted}; got {_kind(value)}.")
    return value


def _cells(rows: Iterable[Any], columns: tuple[str, ...], argument: str) -> list[pa.ChunkedArray]:
    """The columns of rows of names, as strings."""
    cells: list[list[object]] = [[] for _ in columns]
    for number, row in enumerate(rows):
        sized = isinstance(row, (Sequence, np.ndarray)) and not isinstance(row, (str, bytes))
        if not sized or len(row) != len(columns):
            got = f"got {reprlib.repr(row)} in {_row(number)}"
            raise DataError(argument, f"expected rows of {', '.join(columns)}; {got}.")
        for cell, value in zip(cells, row, strict=True):
            cell.append(value)
    return [_strings(cell, name, argument) for cell, name in zip(cells, columns, strict=True)]


def _strings(values: Sequence[object], name: str, argument: str) -> pa.ChunkedArray:
    for row, value in enumerate(values):
        if not isinstance(value, (str, int, np.integer)) or isinstance(value, bool) or value == "":
            raise DataError(
                argument,
                f"expected a string or an integer as {name}, got {reprlib.repr(value)} in "
                f"{_row(row)}.",
            )
    try:
        return pa.chunked_array([pa.array(map(str, values), pa.large_string())])
    except UnicodeEncodeError as error:
        raise DataError(argument, f"expected a {name} in Unicode: {error}.") from error


def _edges(graph: Any) -> Iterator[tuple[object, object, object]]:
    """The edges as triples; the relation is an edge's attribute or, in a multigraph, its key."""
    keyed = graph.edges(keys=True, data=True) if graph.is_multigraph() else None
    if keyed is None:
        keyed = ((head, tail, None, data) for head, tail, data in graph.edges(data=True))
    for head, tail, key, data in keyed:
        # A numeric key was made by networkx: the caller named none.
        named = RELATION if key is None or isinstance(key, int) else key
        words = (data[word] for word in _ATTRIBUTES if data.get(word) is not None)
        yield head, next(words, named), tail


def _rdf_statements(graph: Any, argument: str) -> Iterator[tuple[Any, Any, Any, None]]:
    """The statements of an rdflib graph or dataset as pyoxigraph terms, like those of files."""
    from pyoxigraph import BlankNode, Literal, NamedNode

    rdflib = sys.modules["rdflib"]

    def term(node: Any) -> Any:
        if isinstance(node, rdflib.URIRef):
            return NamedNode(str(node))
        if isinstance(node, rdflib.BNode):
            return BlankNode(str(node))
        if not isinstance(node, rdflib.Literal):
            return None
        language = getattr(node, "language", None)
        return Literal(str(node), language=language) if language else Literal(str(node))

    for statement in graph:
        try:
            subject, predicate, value = map(term, statement[:3])
        except ValueError as error:
            got = reprlib.repr(statement[:3])
            raise DataError(argument, f"expected RDF terms, got {got}: {error}") from error
        yield subject, predicate, value, None
