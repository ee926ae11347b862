"""`numbered`: columns of names as numbers, in threads.

The cells of each chunk are encoded with a dictionary of the chunk's own. Then the dictionaries are
merged, part by part: equal names are in parts of the same number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clusterea.in_threads import in_threads
from clusterea.types import IntArray, Names
from clusterea.types.string_parts import LEAST, PARTS, StringParts, take_strings

ROWS = 1 << 20  # cells that one thread encodes at once


class _Chunk(NamedTuple):
    """Some rows of one column."""

    column: int
    start: int
    cells: pa.Array


@dataclass(frozen=True, slots=True, eq=False)
class _Encoded:
    """A chunk's own dictionary, by part, and the code of each cell."""

    column: int
    start: int
    codes: NDArray[np.int32]
    names: StringParts
    first: IntArray  # (names,), part by part: where each occurs first, row by row


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The distinct names of one part."""

    names: pa.Array
    codes: Sequence[IntArray]  # for each chunk, the place in `names` of each of its own
    first: IntArray  # (names,)


def numbered(columns: Sequence[pa.ChunkedArray], out: Sequence[IntArray]) -> Names:
    """The distinct names in columns of equal length; writes the number of each cell into `out`.

    Numbers follow first appearance, row by row.
    """
    rows, width = len(columns[0]), len(columns)
    num_parts = PARTS if rows >= LEAST else 1
    chunks = in_threads(lambda chunk: _encoded(chunk, width, num_parts), _chunks(columns))
    if not chunks:
        return Names([])
    parts = in_threads(lambda part: _merged(chunks, part, rows * width), range(num_parts))
    occurs_first = np.zeros(rows * width, dtype=bool)
    for part in parts:
        occurs_first[part.first] = True
    ranks = np.empty(rows * width, dtype=np.int64)
    ranks[occurs_first] = np.arange(np.count_nonzero(occurs_first))
    numbers = [ranks[part.first] for part in parts]
    order = np.empty(sum(map(len, numbers)), dtype=np.int64)
    order[np.concatenate(numbers)] = np.arange(len(order))

    def write(at: int) -> None:
        chunk = chunks[at]
        own = [known[part.codes[at]] for known, part in zip(numbers, parts, strict=True)]
        cells = out[chunk.column][chunk.start : chunk.start + len(chunk.codes)]
        cells[:] = np.concatenate(own)[chunk.codes]

    in_threads(write, range(len(chunks)))
    names = pa.concat_arrays([part.names for part in parts])
    return Names.of_distinct(take_strings(names, order))


def _chunks(columns: Sequence[pa.ChunkedArray]) -> Iterator[_Chunk]:
    for number, column in enumerate(columns):
        start = 0
        for chunk in column.chunks:
            # Those of a file read by ranges are encoded, and small enough.
            step = len(chunk) if pa.types.is_dictionary(chunk.type) else ROWS
            for begin in range(0, len(chunk), max(step, 1)):
                cells = chunk[begin : begin + step]
                yield _Chunk(number, start, cells)
                start += len(cells)


def _encoded(chunk: _Chunk, width: int, num_parts: int) -> _Encoded:
    cells = chunk.cells
    if not pa.types.is_dictionary(cells.type):
        cells = cells.cast(pa.large_string()).dictionary_encode()
    names, codes = _used(cells.dictionary, cells.indices.to_numpy())
    parts = StringParts.of(names, num_parts)
    new = np.empty(len(names), dtype=np.int32)
    new[parts.order] = np.arange(len(names), dtype=np.int32)
    moved = new[codes]
    first = np.empty(len(names), dtype=np.int64)
    # Backwards: of several writes to one place the last one stays.
    first[moved[::-1]] = np.arange(len(codes))[::-1]
    first = (first + chunk.start) * width + chunk.column
    return _Encoded(chunk.column, chunk.start, moved, parts, first)


def _used(names: pa.Array, codes: IntArray) -> tuple[pa.Array, IntArray]:
    """A dictionary without the names that no code stands for; columns may share a dictionary."""
    is_used = np.zeros(len(names), dtype=bool)
    is_used[codes] = True
    if is_used.all():
        return names, codes
    return names.filter(pa.array(is_used)), (np.cumsum(is_used) - 1)[codes]


def _merged(chunks: Sequence[_Encoded], part: int, end: int) -> _Part:
    """One part of all chunks, whose cells are before `end`."""
    slices = [chunk.names.range(part) for chunk in chunks]
    pieces = [chunk.names.strings[own] for chunk, own in zip(chunks, slices, strict=True)]
    merged = pa.concat_arrays(pieces).dictionary_encode()
    codes = np.split(merged.indices.to_numpy(), np.cumsum([len(piece) for piece in pieces])[:-1])
    first = np.full(len(merged.dictionary), end)
    for chunk, own, known in zip(chunks, slices, codes, strict=True):
        first[known] = np.minimum(first[known], chunk.first[own])  # a chunk's names are distinct
    return _Part(merged.dictionary, codes, first)
