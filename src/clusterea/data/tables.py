"""Reads tables of named columns: CSV, TSV and Parquet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clusterea.data.delimited import DELIMITERS, read_delimited, split_line
from clusterea.data.headers import FindHeader, Header, given_header, triple_header
from clusterea.data.inputs import check_size, note, regular_file
from clusterea.data.named_graph import NamedGraph, from_columns
from clusterea.data.ranges import read_encoded
from clusterea.data.streams import first_line, open_plain
from clusterea.errors import DataError, cut

TABLES = ("tsv", "csv", "parquet")
TRIPLE_COLUMNS = ("head", "relation", "tail")
_BATCH_ROWS = 1 << 20


def read_table(path: Path, format_name: str, columns: Sequence[str] | None = None) -> NamedGraph:
    """The graph in a table whose `columns` are head, relation and tail.

    Without `columns` the usual headers are understood, as head, relation, tail; text of exactly
    three columns without such a header is read as bare triples.
    """
    table = read_columns(
        path,
        format_name,
        given_header(columns) if columns else triple_header,
        wanted=columns or TRIPLE_COLUMNS,
        may_be_bare=not columns,
        hint="Is this a links file? Name the columns of a table with --columns.",
        read=read_encoded,
    )
    return from_columns(*table.columns)


def read_bare_triples(path: Path) -> NamedGraph:
    """The graph in TSV without a header, as in the folders of datasets."""
    table = read_encoded(path, TRIPLE_COLUMNS, delimiter="\t", hint="Is this a links file?")
    return from_columns(*table.columns)


def read_columns(
    path: Path,
    format_name: str,
    find_header: FindHeader,
    *,
    wanted: Sequence[str],
    may_be_bare: bool = True,
    may_be_empty: bool = False,
    hint: str = "",
    read: Callable[..., pa.Table] = read_delimited,
) -> pa.Table:
    """The columns that `find_header` finds among the file's, or else the `wanted` ones.

    Text without such a header is read as bare columns, unless it `may_be_bare` not. Cells must be
    filled, except that those of the last column `may_be_empty`. Text is read by `read`.
    """
    if format_name == "parquet":
        return _read_parquet(path, find_header, wanted, may_be_empty=may_be_empty)
    delimiter = DELIMITERS[format_name]
    number, line = first_line(path)
    cells = split_line(line, delimiter)
    found = find_header(cells)
    if found is not None:
        if len(set(cells)) < len(cells):
            raise DataError(
                path, f"expected distinct columns, got {cut(', '.join(cells))}.", line=number
            )
        table = read(
            path,
            cells,
            delimiter=delimiter,
            skip_lines=number,
            keep=found,
            may_be_empty=found[-1:] if may_be_empty else (),
            hint=hint,
        )
        _note_header(path, found)
        return table.select(list(found))
    if not may_be_bare:
        raise _no_header(path, wanted, cells, number)
    empty = wanted[-1:] if may_be_empty else ()
    table = read(path, wanted, delimiter=delimiter, may_be_empty=empty, hint=hint)
    note(path, f"no header; its columns are taken as {', '.join(wanted)}.")
    return table


def _note_header(path: Path, header: Header) -> None:
    note(path, f"columns {cut(', '.join(header))}.")


def _no_header(
    path: Path, wanted: Sequence[str], got: Sequence[str], line: int | None = None
) -> DataError:
    return DataError(
        path,
        f"expected the columns {cut(', '.join(wanted))}; got {cut(', '.join(got))}.",
        line=line,
    )


def _read_parquet(
    path: Path, find_header: FindHeader, wanted: Sequence[str], *, may_be_empty: bool
) -> pa.Table:
    import pyarrow.parquet as pq

    with open_plain(path):
        pass
    try:
        with pq.ParquetFile(regular_file(path)) as file:
            names = file.schema_arrow.names
            found = find_header(names)
            if found is None:
                raise _no_header(path, wanted, names)
            table = _read_batches(path, file, found, may_be_empty=may_be_empty)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(path, f"can't be read as Parquet: {cut(error)}.") from error
    _note_header(path, found)
    return table


def _read_batches(path: Path, file: Any, columns: Header, *, may_be_empty: bool) -> pa.Table:
    """The columns as strings, counted: a file of a few bytes may hold billions of them."""
    parts: list[pa.Table] = []
    size = rows = 0
    for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=list(columns)):
        part = pa.table(
            {
                name: string_column(
                    path,
                    name,
                    batch[name],
                    rows,
                    may_be_empty=may_be_empty and name == columns[-1],
                )
                for name in columns
            }
        )
        size += part.nbytes
        check_size(path, size)
        rows += part.num_rows
        parts.append(part)
    schema = pa.schema([(name, pa.large_string()) for name in columns])
    return pa.concat_tables(parts) if parts else schema.empty_table()


def string_column(
    path: Path | str,
    name: str,
    column: pa.Array | pa.ChunkedArray,
    rows_before: int = 0,
    *,
    may_be_empty: bool = False,
) -> pa.Array | pa.ChunkedArray:
    """The column as large strings; numbers are taken as names."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (text or pa.types.is_string_view(kind) or pa.types.is_integer(kind)):
        raise DataError(path, f"expected strings or integers in column {name}, got {cut(kind)}.")
    strings = column.cast(pa.large_string())
    strings.validate(full=True)  # Parquet does not promise UTF-8
    if may_be_empty:
        return pc.fill_null(strings, "")
    empty = pc.fill_null(pc.equal(strings, ""), True)
    if pc.any(empty).as_py():
        row = rows_before + pc.index(empty, True).as_py() + 1
        raise DataError(path, f"expected a {cut(name)}, got an empty cell in row {row:,}.")
    return strings
