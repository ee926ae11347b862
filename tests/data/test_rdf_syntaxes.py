"""The syntaxes of RDF beyond Turtle and N-Triples, compression, and formats that are not read."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

import clusterea
from clusterea.data.formats import detect_format, read_graph
from clusterea.errors import DataError
from conftest import WriteFiles

E = "http://e.org/"
TRIPLES = {("a", "r", "b"), ("b", "r", "c"), ("c", "q", "a")}
NQUADS = (
    f"<{E}a> <{E}r> <{E}b> <{E}g> .\n<{E}b> <{E}r> <{E}c> .\n"
    f'<{E}c> <{E}q> <{E}a> _:h .\n<{E}c> <{E}name> "c" <{E}g> .\n'
)
TRIG = (
    f"@prefix e: <{E}> .\ne:g {{ e:a e:r e:b . e:c e:name 'c' }}\n"
    "e:b e:r e:c .\nGRAPH e:h { e:c e:q e:a }\n"
)
JSON_LD = (
    f'{{"@context": {{"@vocab": "{E}", "@base": "{E}"}}, "@graph": [\n'
    '{"@id": "a", "r": {"@id": "b"}}, {"@id": "b", "r": {"@id": "c"}},\n'
    '{"@id": "c", "q": {"@id": "a"}, "name": "c"}]}'
)
N3 = f"@prefix e: <{E}> .\ne:a e:r e:b . e:b e:r e:c . e:c e:q e:a ; e:name 'c' .\n"
CONTENTS = {"nquads": NQUADS, "trig": TRIG, "jsonld": JSON_LD, "n3": N3}


def named_triples(path: Path, format_name: str | None = None) -> set[tuple[str, ...]]:
    read = read_graph(path, format_name)
    assert read.dropped["triples with a literal"] == 1
    return {
        tuple(
            name.removeprefix(E) for name in (read.entities[h], read.relations[r], read.entities[t])
        )
        for h, r, t in read.graph.triples.tolist()
    }


@pytest.mark.parametrize(
    ("name", "syntax"),
    [
        *(("g.nq", "nquads"), ("g.nquads", "nquads"), ("g.trig", "trig"), ("g.n3", "n3")),
        *(("g.jsonld", "jsonld"), ("g.json", "jsonld"), ("bare", "jsonld"), ("bare", "nquads")),
    ],
)
def test_triples_of_all_graphs(name: str, syntax: str, write_files: WriteFiles) -> None:
    path = write_files({name: CONTENTS[syntax]}) / name
    assert detect_format(path) == syntax
    assert named_triples(path) == TRIPLES


@pytest.mark.parametrize("syntax", CONTENTS)
def test_a_syntax_that_is_named(syntax: str, write_files: WriteFiles) -> None:
    assert named_triples(write_files({"g.txt": CONTENTS[syntax]}) / "g.txt", syntax) == TRIPLES


def test_trig_that_begins_with_a_graph(write_files: WriteFiles) -> None:
    text = f"GRAPH <{E}g> {{ <{E}a> <{E}r> <{E}b> }}\n"
    assert detect_format(write_files({"g": text}) / "g") == "trig"


@pytest.mark.parametrize("suffix", [".owl", ".rdf", ".xml"])
def test_turtle_with_the_suffix_of_xml(suffix: str, write_files: WriteFiles) -> None:
    path = write_files({f"g{suffix}": N3}) / f"g{suffix}"
    assert detect_format(path) == "turtle"
    assert named_triples(path) == TRIPLES


def test_json_ld_whose_context_is_elsewhere(write_files: WriteFiles) -> None:
    path = write_files({"g.jsonld": '{"@context": "https://schema.org/", "@id": "http://a"}'})
    with pytest.raises(DataError, match="g.jsonld: expected jsonld, but: its @context is an add"):
        read_graph(path / "g.jsonld")


def zipped(members: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return content.getvalue()


@pytest.mark.parametrize("name", ["g.trig.zst", "g.zst", "g.trig"])
def test_zstandard(name: str, write_files: WriteFiles) -> None:
    half = len(TRIG) // 2
    # Two frames, one after the other, as parallel compressors write them.
    frames = [
        pa.compress(part.encode(), "zstd", asbytes=True) for part in (TRIG[:half], TRIG[half:])
    ]
    path = write_files({name: b"".join(frames)}) / name
    assert named_triples(path, "trig") == TRIPLES


def test_zstandard_cut_off(write_files: WriteFiles) -> None:
    path = write_files({"g.trig.zst": pa.compress(TRIG.encode() * 99, "zstd", asbytes=True)[:-40]})
    with pytest.raises(DataError, match="g.trig.zst: can't be unpacked"):
        read_graph(path / "g.trig.zst")


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("g.zip", {"dump/g.trig": TRIG}),
        ("g.trig.zip", {"whatever": TRIG}),
        ("g.zip", {"dump/": "", "dump/g.jsonld": JSON_LD, "__MACOSX/._g.jsonld": "x"}),
    ],
)
def test_zip(name: str, members: dict[str, str], write_files: WriteFiles) -> None:
    assert named_triples(write_files({name: zipped(members)}) / name) == TRIPLES


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            zipped({"one.nt": "", "two.nt": ""}),
            r"g.zip: can't be unpacked: expected one file in it, got 2: one.nt, two.nt; unpack it",
        ),
        (zipped({"folder/": ""}), "g.zip: can't be unpacked: expected one file in it, got 0"),
        (zipped({"one.nt": NQUADS})[:-30], "g.zip: can't be unpacked"),
        (zipped({f"{n:0100}.nt": "" for n in range(99)}), "g.zip: .* got 99: 0.*…"),
    ],
)
def test_zip_that_is_refused(content: bytes, message: str, write_files: WriteFiles) -> None:
    with pytest.raises(DataError, match=message) as refused:
        read_graph(write_files({"g.zip": content}) / "g.zip")
    assert len(str(refused.value)) < 500


UNREAD: list[tuple[str, str | bytes, str]] = [
    ("g.hdt", b"$HDT\x01", "HDT is not read; convert it to RDF/XML, Turtle or N-Triples."),
    ("g", b"$HDT\x01", "HDT is not read"),
    ("g.obo", "format-version: 1.2\n", "OBO is not read"),
    ("g.owl", "format-version: 1.2\n", "OBO is not read"),
    ("g.owl", "Prefix(:=<http://a#>)\nOntology(<http://a>)", "OWL functional syntax is not read"),
    ("g.owl", "Prefix: : <http://a#>\n", "OWL Manchester syntax is not read"),
    (
        "g.owl",
        '<?xml version="1.0"?>\n<!-- <rdf:RDF> -->\n<Ontology xmlns="http://www.w3.org/2002/07/owl#">',
        "OWL/XML is not read",
    ),
    ("g.xml", '<?xml version="1.0"?>\n<graphml xmlns="x"/>', "GraphML is not read; save its edges"),
    ("g.gexf", "<gexf/>", "GEXF is not read"),
    ("g.jsonl", '{"head": "a"}\n', "JSON lines is not read; save its edges as CSV"),
    ("g.ndjson.gz", '{"head": "a"}\n', "JSON lines is not read"),
    ("g.json", '{"head": "a"}\n', "JSON without JSON-LD's @context, @graph or @id is not read"),
    ("g", '[{"head": "a"},\n', "JSON without JSON-LD's"),
    ("g.xlsx", zipped({"a": "", "b": ""}), "a spreadsheet is not read"),
    ("g.db", b"SQLite format 3\0", "SQLite is not read"),
    ("g", b"SQLite format 3\0", "SQLite is not read"),
    ("neo4j.dump", b"\0", "a Neo4j dump is not read"),
    ("g.tar.gz", b"\0", "an archive is not read; unpack it"),
    ("g.owl", "<!DOCTYPE html>\n<html>", "HTML is not read"),
]


@pytest.mark.parametrize(("name", "content", "message"), UNREAD)
def test_formats_that_are_not_read(
    name: str, content: str | bytes, message: str, write_files: WriteFiles
) -> None:
    folder = write_files({name: content, "t.tsv": "x\tr\ty\n", "l.tsv": "a\tx\n"})
    with pytest.raises(DataError) as refused:
        clusterea.load(folder / name, folder / "t.tsv", links=folder / "l.tsv")
    assert str(refused.value).startswith(f"{folder / name}: {message}")
    with pytest.raises(DataError, match="is not read"):
        clusterea.load(folder / "t.tsv", folder / "t.tsv", links=folder / name)
