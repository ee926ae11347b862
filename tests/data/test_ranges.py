"""Reading by ranges gives the graph, and the errors, of reading at once."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from clusterea.data import ranges
from clusterea.data.named_graph import NamedGraph
from clusterea.data.tables import read_bare_triples, read_table
from clusterea.errors import DataError

LINES = [f"e{n * 7 % 11}\tr{n * n % 3}\té{n * 5 % 13}" for n in range(60)]
TEXTS = {
    "plain": "\n".join(LINES) + "\n",
    "no last newline": "\n".join(LINES),
    "Windows line ends": "\r\n".join(LINES),
    "blank lines": "\n\n".join(LINES),
    "white space": "\n".join([*LINES[:30], "  ", *LINES[30:]]),
    "byte-order mark": "\ufeff" + "\n".join(LINES),
    "byte-order marks": "\n".join(f"\ufeff{line}" for line in LINES),
    "quotes": "\n".join(line.replace("e1", '"e1') for line in LINES),
}


def same(one: NamedGraph, other: NamedGraph) -> bool:
    return (
        np.array_equal(one.graph.triples, other.graph.triples)
        and one.entities.arrow.equals(other.entities.arrow)
        and one.relations.arrow.equals(other.relations.arrow)
        and one.dropped == other.dropped
    )


@pytest.mark.parametrize("size", [1, 20, 100, 500])
@pytest.mark.parametrize("text", TEXTS)
def test_same_graph(text: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "triples"
    path.write_bytes(TEXTS[text].encode())
    whole = read_bare_triples(path)
    monkeypatch.setattr(ranges, "RANGE", size)
    assert same(read_bare_triples(path), whole)


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.tsv.gz"])
def test_same_table(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = "note\ttail\thead\trelation"
    text = "\n".join([header, *(f"some, note\t{line}" for line in LINES)])
    if ".csv" in name:
        text = text.replace(", ", " ").replace("\t", ",")
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    whole = read_table(path, name.split(".")[1])
    monkeypatch.setattr(ranges, "RANGE", 100)
    assert same(read_table(path, name.split(".")[1]), whole)


def test_ranges_were_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "triples"
    path.write_text(TEXTS["plain"])
    monkeypatch.setattr(ranges, "RANGE", 100)
    names = ("head", "relation", "tail")
    table = ranges.read_encoded(path, names, delimiter="\t")
    assert table["head"].num_chunks > 5


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("a\tb", "line 41: expected 3 tab-separated columns, got 2"),
        ("a\t\tb", "line 41: expected a relation, got an empty cell"),
        ("a\tb\t\udcff", "line 41: expected UTF-8, got byte 0xff"),
    ],
)
def test_a_bad_line_is_named(
    bad: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "triples"
    text = "\n".join([*LINES[:40], bad, *LINES[40:]])
    path.write_bytes(text.encode(errors="surrogateescape"))
    monkeypatch.setattr(ranges, "RANGE", 100)
    with pytest.raises(DataError, match=told):
        read_bare_triples(path)
