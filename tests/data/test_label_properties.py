"""Labels in RDF: which properties, which one first, in each syntax and in rdflib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import clusterea
from clusterea.data.label_properties import LABEL_PROPERTIES
from clusterea.errors import InputError
from clusterea.types import Benchmark
from conftest import WriteFiles

PREFIXES = """\
@prefix : <http://e/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix schema: <http://schema.org/> .
"""
TRIPLES = ":a :r :b . :b :r :c .\n"
OTHERS = [("x", "p", "y"), ("y", "q", "z")]
LINKS = [("http://e/a", "x")]


def labels(benchmark: Benchmark, entity: str = "http://e/a") -> list[str]:
    if benchmark.labels is None:
        return []
    return benchmark.labels.source.of(benchmark.names.source.index(entity))


def of_turtle(path: Path, statements: str, **options: Any) -> Benchmark:
    (path / "a.ttl").write_text(PREFIXES + TRIPLES + statements)
    return clusterea.load(path / "a.ttl", OTHERS, links=LINKS, **options)


@pytest.mark.parametrize("iri", LABEL_PROPERTIES)
def test_each_property(iri: str, tmp_path: Path) -> None:
    assert labels(of_turtle(tmp_path, f':a <{iri}> "Anna" .')) == ["Anna"]


def test_other_properties_are_no_labels(tmp_path: Path) -> None:
    benchmark = of_turtle(tmp_path, ':a :comment "Anna" ; rdfs:comment "Anna" ; rdfs:label :b .')
    assert benchmark.labels is None
    assert benchmark.dropped == {"source triples with a literal": 2}


def test_the_preferred_property_comes_first(tmp_path: Path) -> None:
    statements = (
        ':a skos:altLabel "by skos:altLabel" ; schema:name "by schema:name" ; '
        'rdfs:label "by rdfs:label" ; skos:prefLabel "by skos:prefLabel" .'
    )
    assert labels(of_turtle(tmp_path, statements)) == [
        *("by skos:prefLabel", "by rdfs:label", "by schema:name", "by skos:altLabel"),
    ]


def test_english_and_labels_without_a_language_come_first(tmp_path: Path) -> None:
    statements = (
        ':a rdfs:label "Wien"@de, "Vienna"@en-GB, "Vienne"@fr . '
        ':b rdfs:label "Bécs"@hu, "Vienna" . '
        ':c rdfs:label "Wien"@de ; skos:prefLabel "Bécs"@hu ; skos:altLabel "Vienna"@en .'
    )
    benchmark = of_turtle(tmp_path, statements)
    assert labels(benchmark) == ["Vienna", "Wien", "Vienne"]
    assert labels(benchmark, "http://e/b") == ["Vienna", "Bécs"]
    # The property counts more than the language.
    assert labels(benchmark, "http://e/c") == ["Bécs", "Wien", "Vienna"]


def test_a_property_of_the_users_own_comes_before_all(tmp_path: Path) -> None:
    statements = ':a skos:prefLabel "usual" ; :title "own" .'
    assert labels(of_turtle(tmp_path, statements)) == ["usual"]
    for given in ("http://e/title", ["http://e/title"]):
        benchmark = of_turtle(tmp_path, statements, label_properties=given)
        assert labels(benchmark) == ["own", "usual"]


def test_on_the_command_line(tmp_path: Path, clusterea_command: Any) -> None:
    for side in "ab":
        name = tmp_path / f"{side}.ttl"
        name.write_text(
            f"<{side}:1> <u:r> <{side}:2> .\n<{side}:1> <u:title> 'Anna' ; <u:also> 'B' .\n"
        )
    asked = ["info", tmp_path / "a.ttl", tmp_path / "b.ttl"]
    ran = clusterea_command(*asked, "--label-property", "u:none", "--label-property", "u:title")
    assert ran.code == 0, ran.err
    assert "Names: labels for 50 % and 50 % of entities." in ran.err
    assert "Neither graph has a literal with the label property 'u:none'." in ran.err
    assert "u:title" not in ran.err
    assert clusterea_command(*asked).code == 2


def test_a_property_of_one_graph_is_not_told(tmp_path: Path) -> None:
    asked = ["http://e/title", "skos:prefLabel", "skos:prefLabel"]
    benchmark = of_turtle(tmp_path, ':a :title "own" ; :other "Anna" .', label_properties=asked)
    told = [note for note in benchmark.notes if "label property" in note]
    assert told == [
        "Neither graph has a literal with the label property 'skos:prefLabel'. "
        "Is this its full IRI?"
    ]


def test_they_go_with_rdf(write_files: WriteFiles) -> None:
    triples = "a\tr\tb\n"
    folder = write_files(
        {"rel_triples_1": triples, "rel_triples_2": triples, "ent_links": "a\ta\n"}
    )
    for given in ((folder,), (OTHERS, OTHERS)):
        with pytest.raises(InputError, match="^label_properties goes with RDF. .* use name_files"):
            clusterea.load(*given, label_properties="http://e/title")


def test_labels_of_what_is_in_no_triple_are_left_out(tmp_path: Path) -> None:
    benchmark = of_turtle(tmp_path, ':nobody rdfs:label "Nobody" . [] rdfs:label "Blank" .')
    assert benchmark.labels is None


def test_a_label_of_spaces_is_none_and_others_are_trimmed(tmp_path: Path) -> None:
    benchmark = of_turtle(tmp_path, ':a rdfs:label " ", "", " Anna\\n" .')
    assert labels(benchmark) == ["Anna"]


def test_the_same_label_twice_is_one(tmp_path: Path) -> None:
    assert labels(of_turtle(tmp_path, ':a rdfs:label "A"@en, "A"@de ; schema:name "A" .')) == ["A"]


JSON_LD = """{
    "@context": {"label": "http://www.w3.org/2000/01/rdf-schema#label"},
    "@id": "http://e/a",
    "label": ["Anna", {"@value": "Anne", "@language": "fr"}],
    "http://e/r": {"@id": "http://e/b", "http://e/r": {"@id": "http://e/c"}}
}"""
RDF_XML = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://e/"
    xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"><rdf:Description rdf:about="http://e/a">
    <rdfs:label xml:lang="fr">Anne</rdfs:label><rdfs:label>Anna</rdfs:label>
    <r rdf:resource="http://e/b"/></rdf:Description></rdf:RDF>"""
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
STATEMENTS = (
    f'<http://e/a> {LABEL} "Anne"@fr .\n<http://e/a> {LABEL} "Anna" .\n'
    "<http://e/a> <http://e/r> <http://e/b> .\n"
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonld", JSON_LD),
        ("a.rdf", RDF_XML),
        ("a.nt", STATEMENTS),
        ("a.nt", STATEMENTS.replace("\n", "\r\n")),
        ("a.nq", STATEMENTS.replace(" .\n", " <http://e/g> .\n")),
        ("a.ttl", STATEMENTS),
    ],
)
def test_in_each_syntax(name: str, content: str, write_files: WriteFiles) -> None:
    folder = write_files({name: content})
    benchmark = clusterea.load(folder / name, OTHERS, links=LINKS)
    assert labels(benchmark) == ["Anna", "Anne"]


def test_rdflib(tmp_path: Path) -> None:
    rdflib = pytest.importorskip("rdflib")
    statements = ':a rdfs:label "Wien"@de, "Vienna"@en ; :title "own" .'
    file = of_turtle(tmp_path, statements, label_properties="http://e/title")
    graph = rdflib.Graph().parse(tmp_path / "a.ttl")
    value = clusterea.load(graph, OTHERS, links=LINKS, label_properties="http://e/title")
    assert labels(value) == labels(file) == ["own", "Vienna", "Wien"]


@pytest.mark.parametrize("label", ["a\nb", "a\0b", "a\tb", "\u202e", "'; --", "<script>"])
def test_a_label_is_kept_as_it_is(label: str, write_files: WriteFiles) -> None:
    escaped = "".join(f"\\u{ord(letter):04X}" for letter in label)
    content = f'<http://e/a> <http://e/r> <http://e/b> .\n<http://e/a> {LABEL} "{escaped}" .\n'
    folder = write_files({"a.nt": content})
    assert labels(clusterea.load(folder / "a.nt", OTHERS, links=LINKS)) == [label]


def test_a_label_of_ten_megabytes(write_files: WriteFiles) -> None:
    long = "word " * 2_000_000 + "."
    content = f'<http://e/a> <http://e/r> <http://e/b> .\n<http://e/a> {LABEL} "{long}" .\n'
    folder = write_files({"a.nt": content})
    benchmark = clusterea.load(folder / "a.nt", OTHERS, links=LINKS)
    assert labels(benchmark) == [long]
    assert all(len(note) < 300 for note in benchmark.notes)
