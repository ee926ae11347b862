"""`read_encoded`: large TSV files, read in parallel by ranges of their lines.

The names in a range are replaced by integers before the next one is read. So memory follows the
number of names and cells, not the length of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from clusterea.data.delimited import parse_columns, read_delimited
from clusterea.data.inputs import regular_file
from clusterea.data.streams import UTF8_BOM, compression_of
from clusterea.in_threads import in_threads

RANGE = 1 << 23  # bytes


def read_encoded(
    path: Path,
    names: Sequence[str],
    *,
    delimiter: str,
    skip_lines: int = 0,
    keep: Sequence[str] | None = None,
    may_be_empty: Sequence[str] = (),
    hint: str = "",
) -> pa.Table:
    """As `read_delimited`; the columns of a large file are dictionaries, another one per chunk.

    CSV and compressed files are read at once: a line end may be in quotes, and unpacking can't
    start in the middle. So are files with a bad line, for the sake of the message.
    """
    cuts = _cuts(regular_file(path)) if delimiter == "\t" and compression_of(path) is None else []
    if len(cuts) > 2:
        wanted = list(keep if keep is not None else names)

        def read(start: int, stop: int) -> pa.Table | None:
            skipped = 0 if start else skip_lines
            return _range(regular_file(path), start, stop, names, wanted, skipped, may_be_empty)

        parts = in_threads(lambda range_: read(*range_), pairwise(cuts))
        if all(part is not None for part in parts):
            return pa.concat_tables(parts)
    return read_delimited(
        path,
        names,
        delimiter=delimiter,
        skip_lines=skip_lines,
        keep=keep,
        may_be_empty=may_be_empty,
        hint=hint,
    )


def _cuts(path: Path) -> list[int]:
    """The first byte of each range, each at the start of a line, and the end of the file."""
    size = path.stat().st_size
    cuts = [0]
    with path.open("rb") as file:
        while cuts[-1] + RANGE < size:
            file.seek(cuts[-1] + RANGE)
            file.readline()
            cuts.append(file.tell())
    return cuts if cuts[-1] == size else [*cuts, size]


def _range(
    path: Path,
    start: int,
    stop: int,
    names: Sequence[str],
    wanted: Sequence[str],
    skip_lines: int,
    may_be_empty: Sequence[str],
) -> pa.Table | None:
    """The columns of a range of lines, as dictionaries; None if a line is bad."""
    with path.open("rb") as file:
        file.seek(start)
        text = file.read(stop - start)
    if start and text.startswith(UTF8_BOM):  # Arrow would take it for that of a file
        return None
    try:
        table = parse_columns(
            pa.BufferReader(text),
            names,
            wanted,
            delimiter="\t",
            skip_lines=skip_lines,
            in_range=True,
        )
        columns = {name: table[name].combine_chunks().dictionary_encode() for name in wanted}
        for column in columns.values():
            column.dictionary.validate(full=True)  # UTF-8, of each name once
    except pa.ArrowInvalid:
        return None
    for name, column in columns.items():
        if name not in may_be_empty and pc.any(pc.equal(column.dictionary, "")).as_py():
            return None
    return pa.table(columns)
