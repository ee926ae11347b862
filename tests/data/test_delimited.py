"""The columnar reader against the obvious one, on text of every kind."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterea.data.delimited import read_delimited
from clusterea.data.named_graph import from_columns
from clusterea.errors import InputError


def read(path: Path) -> list[tuple[str, ...]]:
    table = read_delimited(path, ("head", "relation", "tail"), delimiter="\t")
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


# Any text at all, less what ends a cell or a line.
CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\t\n\r"), min_size=1, max_size=6)
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=8)


@given(
    rows=ROWS,
    end=st.sampled_from(["\n", "\r\n"]),
    mark=st.booleans(),
    last=st.booleans(),
    blanks=st.integers(0, 3),
    zipped=st.booleans(),
)
def test_what_was_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, ...]],
    end: str,
    mark: bool,
    last: bool,
    blanks: int,
    zipped: bool,
) -> None:
    text = end.join("\t".join(row) for row in rows) + (end if last else "")
    text += end * blanks if last else ""
    content = (b"\xef\xbb\xbf" if mark else b"") + text.encode()
    path = tmp_path_factory.mktemp("any") / "triples"
    path.write_bytes(gzip.compress(content) if zipped else content)
    assert read(path) == rows


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_one_message(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("bytes") / "triples"
    path.write_bytes(content)
    try:
        rows = read(path)
    except InputError as error:
        assert str(error).startswith(str(path))
    else:
        assert all(len(row) == 3 and all(row) for row in rows)


def test_long_files_come_in_many_blocks_and_keep_one_numbering(tmp_path: Path) -> None:
    # Names of 2 kB make 24 MB: several blocks of the reader.
    pad = "n" * 2000
    rows = [(f"{pad}{i % 97}", f"r{i % 5}", f"{pad}{i * 7 % 89}") for i in range(6000)]
    path = tmp_path / "triples"
    path.write_text("".join("\t".join(row) + "\n" for row in rows))
    table = read_delimited(path, ("head", "relation", "tail"), delimiter="\t")
    assert table["head"].num_chunks > 1
    named = from_columns(*table.columns)
    assert named.dropped == {"repeated triples": len(rows) - len(set(rows))}
    graph = named.graph
    back = {
        (named.entities[h], named.relations[r], named.entities[t])
        for h, r, t in graph.triples.tolist()
    }
    assert back == set(rows)


def test_ids_do_not_change_from_run_to_run(tmp_path: Path) -> None:
    path = tmp_path / "triples"
    path.write_text("b\tr\ta\nc\tq\tb\na\tr\tb\n")
    table = read_delimited(path, ("head", "relation", "tail"), delimiter="\t")
    named = from_columns(*table.columns)
    assert list(named.entities) == ["b", "a", "c"]  # by first appearance, row by row
    assert list(named.relations) == ["r", "q"]
