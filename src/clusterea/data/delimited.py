"""Reads CSV and TSV text into columns of strings."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from clusterea.data.inputs import regular_file
from clusterea.data.streams import (
    LONGEST_LINE,
    UNPACK_ERRORS,
    compression_of,
    open_stream,
    text_lines,
)
from clusterea.errors import DataError, cut

DELIMITERS = {"tsv": "\t", "csv": ","}
_CSV_CELL = re.compile(r'(?:^|,)("(?:[^"]|"")*"|[^,]*)')
_DELIMITER_NAMES = {"\t": "tab-separated", ",": "comma-separated"}


def split_line(line: str, delimiter: str) -> list[str]:
    """The cells of one line. Quotes are special in CSV only."""
    if delimiter != ",":
        return line.split(delimiter)
    try:
        return next(csv.reader([line]), [])
    except csv.Error:  # a cell that is too long for it
        return [
            whole[1:-1].replace('""', '"') if whole.startswith('"') else whole
            for whole in _CSV_CELL.findall(line)
        ]


def read_delimited(
    path: Path,
    names: Sequence[str],
    *,
    delimiter: str,
    skip_lines: int = 0,
    keep: Sequence[str] | None = None,
    may_be_empty: Sequence[str] = (),
    hint: str = "",
) -> pa.Table:
    """The file as columns of large strings called `names` (only those in `keep`, if given).

    Blank lines, Windows line ends, a byte-order mark and a missing last newline are all read as
    meant. Anything else that is not `len(names)` cells a line, each filled unless its column
    `may_be_empty`, is a `DataError` with its line; `hint` is added to a wrong cell count.
    """
    wanted = list(keep if keep is not None else names)
    filled = [name for name in wanted if name not in may_be_empty]

    def parse(content: Any, skip: int) -> pa.Table:
        return parse_columns(content, names, wanted, delimiter=delimiter, skip_lines=skip)

    try:
        table = parse(_arrow_input(path), skip_lines)
        whole = not any(pc.any(pc.equal(table[name], "")).as_py() for name in filled)
    except (pa.ArrowInvalid, *UNPACK_ERRORS):
        whole = False
    if not whole:
        # Slowly, line by line: a line is wrong, or some lines have only white space.
        lines = (each for each in text_lines(path) if each[0] > skip_lines)
        rows = split_rows(path, lines, names, delimiter=delimiter, filled=filled, hint=hint)
        rest = [line for _, line, _ in rows]
        if not rest:
            raise DataError(path, f"expected lines of {cut(', '.join(wanted))}, got an empty file.")
        try:
            table = parse(pa.BufferReader("\n".join(rest).encode()), 0)
        except pa.ArrowInvalid as error:
            raise DataError(path, f"can't be read: {cut(error)}.") from error
    if not table.num_rows:
        raise DataError(path, f"expected lines of {cut(', '.join(wanted))}, got none.")
    return table


def parse_columns(
    content: Any,
    names: Sequence[str],
    wanted: Sequence[str],
    *,
    delimiter: str,
    skip_lines: int = 0,
    in_range: bool = False,
) -> pa.Table:
    """The `wanted` columns of text whose columns are `names`, as large strings.

    A range is parsed in this thread alone, and the caller checks that it is UTF-8.

    Raises:
        pa.ArrowInvalid: The text is not UTF-8, or a line has another number of cells.
    """
    return pa_csv.read_csv(
        content,
        read_options=pa_csv.ReadOptions(
            column_names=list(names),
            block_size=LONGEST_LINE,
            skip_rows=skip_lines,
            use_threads=not in_range,
        ),
        parse_options=pa_csv.ParseOptions(
            delimiter=delimiter,
            quote_char='"' if delimiter == "," else False,
            double_quote=delimiter == ",",
            ignore_empty_lines=True,
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.large_string()),
            include_columns=list(wanted),
            strings_can_be_null=False,
            check_utf8=not in_range,
        ),
    )


def _arrow_input(path: Path) -> Any:
    regular = regular_file(path)
    if compression_of(path) is None and str(regular).isprintable():
        return str(regular)
    return pa.PythonFile(open_stream(path), mode="r")


def split_rows(
    path: Path,
    lines: Iterable[tuple[int, str]],
    names: Sequence[str],
    *,
    delimiter: str,
    filled: Sequence[str],
    hint: str = "",
) -> Iterator[tuple[int, str, list[str]]]:
    """Number, text and cells of each line that is not blank. Raises at the first wrong one.

    Each line must have as many cells as `names`, and something in the columns that are `filled`.
    """
    kind = _DELIMITER_NAMES[delimiter]
    for number, line in lines:
        if not line.strip():
            continue
        cells = split_line(line, delimiter)
        if len(cells) != len(names):
            problem = f"expected {len(names)} {kind} columns, got {len(cells)}."
            raise DataError(path, f"{problem} {hint}".rstrip(), line=number)
        for name, cell in zip(names, cells, strict=True):
            if name in filled and not cell:
                raise DataError(path, f"expected a {cut(name)}, got an empty cell.", line=number)
        yield number, line, cells
