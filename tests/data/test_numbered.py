"""Numbers follow first appearance, row by row, however the cells are cut and encoded."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from clusterea.data import numbered as module
from clusterea.data.numbered import numbered

DRAW = np.random.default_rng(0)
HEADS, TAILS = ([f"e{n}" for n in DRAW.integers(60, size=200)] for _ in range(2))


def by_hand(columns: list[list[str]]) -> tuple[list[str], list[list[int]]]:
    """The names, and the numbers of each column, one cell after the other."""
    numbers: dict[str, int] = {}
    for row in zip(*columns, strict=True):
        for cell in row:
            numbers.setdefault(cell, len(numbers))
    return list(numbers), [[numbers[cell] for cell in column] for column in columns]


def chunked(cells: list[str], size: int, encode: bool) -> pa.ChunkedArray:
    chunks = [pa.array(cells[at : at + size]) for at in range(0, len(cells), size)]
    if encode:
        chunks = [chunk.cast(pa.large_string()).dictionary_encode() for chunk in chunks]
    return pa.chunked_array(chunks)


def check(columns: list[pa.ChunkedArray]) -> None:
    out = np.empty((len(columns[0]), 3), dtype=np.int64)
    names = numbered(columns, [out[:, 0], out[:, 2]][: len(columns)])
    expected, numbers = by_hand([column.to_pylist() for column in columns])
    assert names.arrow.to_pylist() == expected
    assert out[:, 0].tolist() == numbers[0]
    if len(columns) == 2:
        assert out[:, 2].tolist() == numbers[1]


@pytest.mark.parametrize("encode", [False, True])
@pytest.mark.parametrize("sizes", [(200, 200), (7, 7), (30, 11)])
@pytest.mark.parametrize("least", [0, 1000])
def test_as_by_hand(
    encode: bool, sizes: tuple[int, int], least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LEAST", least)  # 0: in parts
    monkeypatch.setattr(module, "ROWS", 13)
    check([chunked(HEADS, sizes[0], encode), chunked(TAILS, sizes[1], encode)])
    check([chunked(HEADS, sizes[0], encode)])


def test_columns_may_share_a_dictionary() -> None:
    """Then each has names that it does not use."""
    names = pa.array(["unused", "a", "b", "c"], pa.large_string())
    columns = [
        pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), names)])
        for codes in ([3, 3, 1], [2, 3, 2])
    ]
    check(columns)


def test_no_cells() -> None:
    assert len(numbered([pa.chunked_array([], pa.large_string())], [np.empty(0, np.int64)])) == 0
