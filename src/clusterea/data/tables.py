"""Reads tables of named columns: CSV, TSV and Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from clusterea.data.delimited import DELIMITERS, read_delimited, split_line
from clusterea.data.named_graph import NamedGraph, from_columns
from clusterea.data.streams import first_line, open_plain
from clusterea.errors import DataError

TABLES = ("tsv", "csv", "parquet")
TRIPLE_COLUMNS = ("head", "relation", "tail")
# Headers that are understood without --columns.
KNOWN_HEADERS = (TRIPLE_COLUMNS, ("subject", "predicate", "object"))


def read_table(path: Path, format_name: str, columns: Sequence[str] | None = None) -> NamedGraph:
    """The graph in a table whose `columns` are head, relation and tail.

    Without `columns` the header head, relation, tail (or subject, predicate, object) is understood;
    text of exactly three columns without such a header is read as bare triples.
    """
    table = read_columns(
        path,
        format_name,
        [tuple(columns)] if columns else KNOWN_HEADERS,
        bare=None if columns else TRIPLE_COLUMNS,
        hint="Is this a links file?",
    )
    return from_columns(*table.columns)


def read_bare_triples(path: Path) -> NamedGraph:
    """The graph in TSV without a header, as datasets' folders have it."""
    table = read_delimited(path, TRIPLE_COLUMNS, delimiter="\t", hint="Is this a links file?")
    return from_columns(*table.columns)


def read_columns(
    path: Path,
    format_name: str,
    headers: Sequence[tuple[str, ...]],
    *,
    bare: Sequence[str] | None,
    hint: str = "",
) -> pa.Table:
    """The columns of the first of `headers` that the file has, in that order.

    A file with none of them is read as bare text with the columns `bare`, or refused where that
    is None.
    """
    if format_name == "parquet":
        return _read_parquet(path, headers)
    delimiter = DELIMITERS[format_name]
    number, line = first_line(path)
    cells = split_line(line, delimiter)
    found = find_header(cells, headers)
    if found is not None:
        if len(set(cells)) < len(cells):
            raise DataError(
                path, f"expected distinct columns, got {', '.join(cells)}.", line=number
            )
        table = read_delimited(
            path, cells, delimiter=delimiter, skip_lines=number, keep=found, hint=hint
        )
        return table.select(list(found))
    if bare is None:
        wanted = " or ".join(", ".join(header) for header in headers)
        raise DataError(
            path, f"expected the columns {wanted}; got {', '.join(cells)}.", line=number
        )
    return read_delimited(path, bare, delimiter=delimiter, hint=hint)


def find_header(names: Sequence[str], headers: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """The first of `headers` whose columns are all among `names`."""
    return next((header for header in headers if set(header) <= set(names)), None)


def _read_parquet(path: Path, headers: Sequence[tuple[str, ...]]) -> pa.Table:
    import pyarrow.parquet as pq

    with open_plain(path):
        pass
    try:
        names = pq.read_schema(path).names
        found = find_header(names, headers)
        if found is None:
            wanted = " or ".join(", ".join(header) for header in headers)
            raise DataError(path, f"expected the columns {wanted}; got {', '.join(names)}.")
        table = pq.read_table(path, columns=list(found)).select(list(found))
        return pa.table({name: string_column(path, name, table[name]) for name in found})
    except (pa.ArrowException, OSError) as error:
        raise DataError(path, f"can't be read as Parquet: {error}.") from error


def string_column(path: Path | str, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as large strings; numbers are taken as names."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (text or pa.types.is_string_view(kind) or pa.types.is_integer(kind)):
        raise DataError(path, f"expected strings or integers in column {name}, got {kind}.")
    strings = column.cast(pa.large_string())
    empty = pc.fill_null(pc.equal(strings, ""), True)
    if pc.any(empty).as_py():
        row = pc.index(empty, True).as_py() + 1
        raise DataError(path, f"expected a {name}, got an empty cell in row {row}.")
    return strings
