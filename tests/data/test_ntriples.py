"""N-Triples that are read as columns of text, against pyoxigraph line by line."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterea.data import ntriples, rdf
from clusterea.data.named_graph import NamedGraph
from clusterea.data.ntriples import read_ntriples
from clusterea.data.rdf import read_rdf
from clusterea.errors import DataError

E = "http://e.org/"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
IRIS = [
    *(f"<{E}{name}>" for name in ("a", "b", "b#c", "%C3%A9", "é", "x(y)", "x,_'y'", "a/../b", "")),
    *("<http://e.org>", "<https://e.org:80/a>", "<http://e.org/a?b=c>", "<urn:a:b>"),
    *("<http://\u4e2d.org/x>", "<HTTP://e.org/a>", r"<http://e.org/\u00e9>", "<mailto:a@b.org>"),
]
BAD_IRIS = [
    *(f"<{E}{name}>" for name in ("%zz", "%a", "a b", "a{b", "b#c#d", "[a]", "\u0080", "\ufffe")),
    *("<http://e.org/a", "<a>", "<>x", "<http:// e/a>", "e:a"),
]
LITERALS = [
    *('"a"', '"a b"@en', '"é"@en-GB', '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', '""'),
    *(r'"a\"b"', r'"a\nb"', '" "', '"a <http://e.org/a> ."', '"x"^^<urn:t>', '"tab\there"'),
]
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
BAD_LITERALS = [
    *('"a', '"a"@', '"a"@1', r'"a\q"', '"a"^^', '"a"^^"b"', "'a'", '"a"@en-', '"a""b"'),
    *(f'"a"@{tag}' for tag in ("abcdefghij", "a", "en-a", "en-x", "en-1", "en-us-us")),
    *(f'"a"^^<{RDF}{name}>' for name in ("langString", "dirLangString")),
]
RELATIONS = [f"<{E}r>", f"<{E}name>", LABEL, "<urn:r>"]
SPACES = [" ", "  ", "\t"]
ENDS = [" .\n", ".\n", " .\r\n", " . # a comment\n", "\t.\n"]
lines = st.builds(
    lambda *parts: "".join(parts),
    st.sampled_from([*IRIS, "_:x", "_:y1"]),
    st.sampled_from(SPACES),
    st.sampled_from(RELATIONS),
    st.sampled_from(SPACES),
    st.sampled_from([*IRIS, *LITERALS, "_:x"]),
    st.sampled_from(ENDS),
)
others = st.sampled_from(["\n", "# a comment\n", "  \r\n"])


def said(read: NamedGraph) -> tuple[object, ...]:
    """What a graph says, whatever its numbers; labels in the order in which they are shown."""
    triples = sorted(
        (read.entities[head], read.relations[relation], read.entities[tail])
        for head, relation, tail in read.graph.triples.tolist()
    )
    labels = read.labels and {
        name: read.labels.of(number) for number, name in enumerate(read.entities)
    }
    return triples, dict(read.dropped), labels, read.label_properties, sorted(read.relations)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ntriples, "BLOCK", 100)


@given(st.lists(lines | others, min_size=1, max_size=12), st.booleans(), st.booleans())
@settings(max_examples=100, deadline=None)
@pytest.mark.usefixtures("small_blocks")
def test_same_as_line_by_line(
    tmp_path_factory: pytest.TempPathFactory, found: list[str], has_mark: bool, is_cut: bool
) -> None:
    text = "".join([f"<{E}s> <{E}r> <{E}t> .\n", *found])
    path = tmp_path_factory.mktemp("nt") / "g.nt"
    content = b"\xef\xbb\xbf" * has_mark + (text.rstrip("\n") if is_cut else text).encode()
    path.write_bytes(content)
    assert said(read_ntriples(path)) == said(read_rdf(path, "ntriples"))
    packed = path.with_suffix(".nt.gz")
    packed.write_bytes(gzip.compress(content))
    assert said(read_ntriples(packed)) == said(read_rdf(path, "ntriples"))


@pytest.mark.parametrize("bad", [*BAD_IRIS, *BAD_LITERALS])
@pytest.mark.usefixtures("small_blocks")
def test_errors_have_the_line_of_the_file(bad: str, tmp_path: Path) -> None:
    path = tmp_path / "g.nt"
    good = f'<{E}a> <{E}r> <{E}b> .\n<{E}a> <{E}name> "a" .\n'
    path.write_text(2 * good + f"<{E}a> <{E}r> {bad} .\n" + good)
    with pytest.raises(DataError) as expected:
        read_rdf(path, "ntriples")
    with pytest.raises(DataError) as raised:
        read_ntriples(path)
    assert str(raised.value) == str(expected.value)
    assert "line 5" in str(raised.value)


@pytest.mark.usefixtures("small_blocks")
def test_a_long_line_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyoxigraph reads a line in parts; its own limit is twice as high."""
    monkeypatch.setattr(ntriples, "LONGEST_LINE", 500)
    path = tmp_path / "g.nt"
    longest = [100, 450, 600, 2000]
    path.write_text("".join(f"<{E}a> <{E}r> <{E}{size * 'b'}> .\n" for size in longest))
    held = 0

    def block(text: bytes, labels: Any) -> Any:
        nonlocal held
        held = max(held, len(text))
        return own(text, labels)

    own = ntriples._block
    monkeypatch.setattr(ntriples, "_block", block)
    assert said(read_ntriples(path)) == said(read_rdf(path, "ntriples"))
    assert 0 < held <= 600


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "g.nt"
    path.write_bytes(f"<{E}a> <{E}r> <{E}b> .\n".encode() + b"<http://e.org/\xff> <a> <b> .\n")
    with pytest.raises(DataError, match=r"g.nt line 2"):
        read_ntriples(path)


def test_a_label_property_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "g.nt"
    path.write_text(f'<{E}a> <{E}r> <{E}b> .\n<{E}a> <{E}name> "Ann" .\n<{E}b> {LABEL} "Bob" .\n')
    read = read_ntriples(path, [f"{E}name"])
    assert said(read) == said(read_rdf(path, "ntriples", [f"{E}name"]))
    assert read.label_properties == {f"{E}name", LABEL.strip("<>")}


def test_ordinary_lines_take_no_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "g.nt"
    path.write_text(
        f'<{E}a> <{E}r> <{E}é%20x> .\n<{E}a> <{E}name> "Ann"@en .\n_:x <{E}r> <{E}a> .\n'
    )
    seen: list[bytes] = []

    def parsed(file: Any, *rest: Any) -> Iterator[Any]:
        seen.append(file.peek())
        return rdf.parsed(file, *rest)

    monkeypatch.setattr(ntriples, "parsed", parsed)
    assert read_ntriples(path).graph.num_triples == 2
    assert seen == [f"_:x <{E}r> <{E}a> .\n".encode()]
