from __future__ import annotations

import pyarrow as pa
import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st
from named_alignments import IRIS, WORDS

from clusterea.data.name_iris import NAMESPACES, beyond_ascii, to_cells, to_iris, to_names, to_uris

ANY = st.lists(st.text(st.characters(codec="utf-8")) | WORDS | IRIS, unique=True)
SOURCE = NAMESPACES.source


def strings(texts: list[str]) -> pa.Array:
    return pa.array(texts, pa.large_string())


def chunked(array: pa.Array) -> pa.ChunkedArray:
    return pa.chunked_array([array[:1], array[1:]])


@given(names=ANY)
def test_every_name_becomes_a_valid_iri_of_its_own_and_back(names: list[str]) -> None:
    iris = to_iris(strings(names), SOURCE)
    for iri in iris.to_pylist():
        (triple,) = pyoxigraph.parse(f"<{iri}> <e:p> <{iri}> .", pyoxigraph.RdfFormat.N_TRIPLES)
        assert triple.subject.value == iri
    assert len(set(iris.to_pylist())) == len(names)
    assert to_names(chunked(iris)).to_pylist() == names


@given(names=ANY)
def test_uris_are_ascii_and_none_are_alike(names: list[str]) -> None:
    uris = to_uris(strings(names), SOURCE)
    assert all(uri.isascii() for uri in uris.to_pylist())
    assert len(set(uris.to_pylist())) == len(names)
    plain = to_names(chunked(uris))
    for name, *readings in zip(names, plain.to_pylist(), _decoded(plain), strict=True):
        assert name in readings


def _decoded(uris: pa.ChunkedArray) -> list[str]:
    return beyond_ascii(uris).to_pylist()  # type: ignore[no-any-return]


@given(names=ANY)
def test_cells_stand_in_one_line(names: list[str]) -> None:
    cells = to_cells(strings(names), SOURCE)
    assert not any(set(cell) & set("\t\r\n") or not cell for cell in cells.to_pylist())
    assert to_names(chunked(cells)).to_pylist() == names


@pytest.mark.parametrize(
    "name",
    [
        "http://dbpedia.org/resource/Été_(saison)",
        "http://user@ex.org:80/a//b/../c;d=1?q=?&r#f/?",
        "urn:isbn:0451450523",
        "mailto:a@b",
        "file:///a",
        "e:a",
    ],
)
def test_iris_stand_for_themselves(name: str) -> None:
    assert to_iris(strings([name]), SOURCE).to_pylist() == [name]


@pytest.mark.parametrize(
    ("name", "iri"),
    [
        ("Paris", "urn:clusterea:source:Paris"),
        ("/m/02mjmr", "urn:clusterea:source:%2Fm%2F02mjmr"),
        ("_:b0", "urn:clusterea:source:_:b0"),
        ("http://ex.org/100%", "urn:clusterea:source:http:%2F%2Fex.org%2F100%25"),
        ("http://ex.org/a#b#c", "urn:clusterea:source:http:%2F%2Fex.org%2Fa%23b%23c"),
        ("東", "urn:clusterea:source:%E6%9D%B1"),
    ],
)
def test_other_names_are_encoded(name: str, iri: str) -> None:
    assert to_iris(strings([name]), SOURCE).to_pylist() == [iri]
