from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
import torch
import yaml
from hypothesis import given
from named_alignments import IRIS, WORDS, Named, aligned, links_of, loaded

from clusterea.export import export
from clusterea.export.curies import curies
from clusterea.types import Pair, Texts
from clusterea.types.alignment import BY_FEATURES, BY_NAMES, BY_STRUCTURE
from valid_sssom import valid_rows

DBPEDIA = aligned(
    ("http://fr.dbpedia.org/resource/Été_(saison)", "http://dbpedia.org/resource/Summer", 0.75),
    ("http://fr.dbpedia.org/resource/L'eau", "http://dbpedia.org/resource/Water", 1.0),
    ("http://fr.dbpedia.org/resource/%C3%A9clair", "http://dbpedia.org/resource/東", 0.5),
    ("New York \"City\" 100%", "urn:isbn:1|2", 0.25),
    ("a\tb\nc", "#x", 0.125),
    ("http://ex.org/", "owl:Thing", 0.0625),
    ("skos:Concept", "http://www.w3.org/2002/07/owl#Thing", 0.03125),
    source="http://fr.dbpedia.org/resource/Seul lonely",
    target="http://dbpedia.org/resource/Alone",
)  # fmt: skip
CALIBRATED = replace(DBPEDIA[0], examples=130), DBPEDIA[1]
MEASURE = "clusterea score"
# Of the links in their order, then of the unmatched; a tab and line ends, quotes, and none.
LABELS = Pair(
    Texts.of_lists([
        ["Été", "Saison d’été"], ['"L\'eau" (chanson)'], ["éclair\tau\r\nchocolat\u2028"],
        [], ["# no comment"], ['"'], ["a|b\x00c"], ["Seul"], [],
    ]),
    Texts.of_lists([["Summer"], [], ["東\n京"], [], [], ["Thing"], [""], ["Alone"]]),
)  # fmt: skip
SHOWN_LABELS = {
    *(("Été", "Summer"), ('"L\'eau" (chanson)', None), ("éclair au chocolat ", "東 京")),
    *((None, None), ("# no comment", None), ('"', "Thing"), ("a|b c", None)),
    *(("Seul", None), (None, "Alone")),
}

# In a process of its own: sssom-py warns as it is imported, and warnings are errors in our tests.
SLOTS = """
expand(m.subject_id), expand(m.object_id), m.confidence, m.similarity_score, m.similarity_measure,
m.subject_label, m.object_label, str(m.mapping_justification)
"""
NOTHING = "https://w3id.org/sssom/NoTermFound"


def exported(
    named: Named,
    folder: Path,
    *,
    labels: Pair[Texts] | None = None,
    with_unmatched: bool = False,
) -> Path:
    path = folder / "out.sssom.tsv"
    export(*named, "sssom", path, labels=labels, with_unmatched=with_unmatched)
    return path


def body(path: Path) -> list[list[str]]:
    lines = path.read_text().split("\n")[:-1]
    return [line.split("\t") for line in lines if not line.startswith("#")]


@pytest.mark.slow
@pytest.mark.parametrize("named", [DBPEDIA, CALIBRATED], ids=["score", "confidence"])
@pytest.mark.parametrize("labels", [None, LABELS], ids=["no labels", "labels"])
def test_sssom_py_finds_it_valid_and_reads_every_mapping(
    named: Named, labels: Pair[Texts] | None, tmp_path: Path
) -> None:
    path = exported(named, tmp_path, labels=labels, with_unmatched=True)
    found = valid_rows(path, SLOTS)
    rows, shown = [], set()
    for *ends, confidence, score, measure, subject_label, object_label, why in found:
        shown.add((subject_label, object_label))
        assert why == "semapv:StructuralMatching"
        if named is CALIBRATED:
            assert (score, measure) == (None, None)
        else:
            assert (confidence, measure) == (None, None if score is None else MEASURE)
        rows.append([*ends, confidence if named is CALIBRATED else score])
    assert shown == (SHOWN_LABELS if labels else {(None, None)})
    assert sorted(rows, key=str) == sorted(
        [
            ["http://fr.dbpedia.org/resource/L'eau", "http://dbpedia.org/resource/Water", 1.0],
            [
                "http://fr.dbpedia.org/resource/%C3%89t%C3%A9_(saison)",
                "http://dbpedia.org/resource/Summer",
                0.75,
            ],
            [
                "http://fr.dbpedia.org/resource/%C3%A9clair",
                "http://dbpedia.org/resource/%E6%9D%B1",
                0.5,
            ],
            [
                "urn:clusterea:source:New%20York%20%22City%22%20100%25",
                "urn:clusterea:target:urn:isbn:1%7C2",
                0.25,
            ],
            ["urn:clusterea:source:a%09b%0Ac", "urn:clusterea:target:%23x", 0.125],
            ["http://ex.org/", "owl:Thing", 0.0625],
            ["skos:Concept", "http://www.w3.org/2002/07/owl#Thing", 0.03125],
            ["http://fr.dbpedia.org/resource/Seul", NOTHING, None],
            ["urn:clusterea:source:lonely", NOTHING, None],
            [NOTHING, "http://dbpedia.org/resource/Alone", None],
        ],
        key=str,
    )


@pytest.mark.parametrize("with_unmatched", [False, True])
def test_it_loads_again_without_those_that_match_nobody(
    with_unmatched: bool, tmp_path: Path
) -> None:
    for named in (DBPEDIA, CALIBRATED):
        path = exported(named, tmp_path, with_unmatched=with_unmatched)
        assert loaded(path, named[1], tmp_path) == links_of(named)


def test_who_is_unmatched_has_no_row_unless_asked_for(tmp_path: Path) -> None:
    def rows(*, with_unmatched: bool) -> list[str]:
        text = exported(DBPEDIA, tmp_path, with_unmatched=with_unmatched).read_text()
        return [line for line in text.splitlines() if not line.startswith("#")]

    links = rows(with_unmatched=False)
    assert len(links) == 1 + len(DBPEDIA[0].links)
    assert not any("NoTermFound" in row for row in links)
    assert rows(with_unmatched=True)[: len(links)] == links
    assert len(rows(with_unmatched=True)) == len(links) + 3


def test_the_head_says_whether_confidence_is_a_probability(tmp_path: Path) -> None:
    def head(named: Named) -> dict[str, str]:
        lines = exported(named, tmp_path).read_text().splitlines()
        found = yaml.safe_load("\n".join(line[1:] for line in lines if line.startswith("#")))
        assert isinstance(found, dict)
        return found

    assert head(DBPEDIA)["comment"] == DBPEDIA[0].confidence_note
    assert "calibrated on 130 links" in head(CALIBRATED)["comment"]


def test_head_and_rows(tmp_path: Path) -> None:
    lines = exported(CALIBRATED, tmp_path, with_unmatched=True).read_text().splitlines()
    head = yaml.safe_load("\n".join(line[1:] for line in lines if line.startswith("#")))
    assert head["license"] == "https://w3id.org/sssom/license/unspecified"
    assert head["curie_map"]["ns1"] == "http://dbpedia.org/resource/"
    assert head["curie_map"]["ns2"] == "http://fr.dbpedia.org/resource/"
    body = [line for line in lines if not line.startswith("#")]
    assert body[0] == "subject_id\tpredicate_id\tobject_id\tmapping_justification\tconfidence"
    assert body[1] == "ns2:L'eau\towl:sameAs\tns1:Water\tsemapv:StructuralMatching\t1"
    assert body[-1] == "sssom:NoTermFound\towl:sameAs\tns1:Alone\tsemapv:StructuralMatching\t"


def test_a_score_is_no_confidence(tmp_path: Path) -> None:
    lines = exported(DBPEDIA, tmp_path, with_unmatched=True).read_text().splitlines()
    columns, *body = [line.split("\t") for line in lines if not line.startswith("#")]
    assert columns[3:] == ["mapping_justification", "similarity_score", "similarity_measure"]
    assert body[0][3:] == ["semapv:StructuralMatching", "1", MEASURE]
    assert body[-1][3:] == ["semapv:StructuralMatching", "", ""]


def test_the_same_alignment_has_the_same_id(tmp_path: Path) -> None:
    first = exported(aligned(("a", "x", 0.5)), tmp_path).read_bytes()
    assert exported(aligned(("a", "x", 0.5)), tmp_path).read_bytes() == first
    others = (
        aligned(("a", "x", 0.25)),
        aligned(("b", "x", 0.5)),
        aligned(("a", "x", 0.5), examples=99),
    )
    for other in others:
        assert exported(other, tmp_path).read_bytes().split(b"\n")[0] != first.split(b"\n")[0]


def test_labels_stand_beside_their_ids(tmp_path: Path) -> None:
    named = aligned(("a", "x", 0.5), ("b", "y", 1.0), source="c", target="z")
    labels = Pair(
        Texts.of_lists([["A", "other"], [], ['6" gun']]), Texts.of_lists([[], ["Y\t\n1"], ["Z"]])
    )
    columns, *rows = body(exported(named, tmp_path, labels=labels, with_unmatched=True))
    assert columns[:6] == [
        *("subject_id", "subject_label", "predicate_id"),
        *("object_id", "object_label", "mapping_justification"),
    ]
    why = "semapv:StructuralMatching"
    assert [[cell.rpartition(":")[2] for cell in row[:6]] for row in rows] == [
        ["b", "", "sameAs", "y", "Y 1", "StructuralMatching"],
        ["a", "A", "sameAs", "x", "", "StructuralMatching"],
        ["c", '"6"" gun"', "sameAs", "NoTermFound", "", "StructuralMatching"],
        ["NoTermFound", "", "sameAs", "z", "Z", "StructuralMatching"],
    ]
    assert {len(row) for row in rows} == {len(columns)}
    assert rows[0][5:] == [why, "1", MEASURE]
    assert rows[3][5:] == [why, "", ""]


def test_labels_change_no_link(tmp_path: Path) -> None:
    path = exported(DBPEDIA, tmp_path, labels=LABELS, with_unmatched=True)
    assert loaded(path, DBPEDIA[1], tmp_path) == links_of(DBPEDIA)


@pytest.mark.parametrize(
    ("grounds", "justification"),
    [
        (None, "StructuralMatching"),
        (0, "StructuralMatching"),
        (BY_STRUCTURE, "StructuralMatching"),
        (BY_NAMES, "LexicalMatching"),
        (BY_FEATURES, "SemanticSimilarityThresholdMatching"),
        (BY_STRUCTURE | BY_NAMES, "CompositeMatching"),
        (BY_STRUCTURE | BY_FEATURES, "CompositeMatching"),
        (BY_NAMES | BY_FEATURES, "CompositeMatching"),
        (BY_STRUCTURE | BY_NAMES | BY_FEATURES, "CompositeMatching"),
    ],
)
def test_each_link_has_its_own_justification(
    grounds: int | None, justification: str, tmp_path: Path
) -> None:
    alignment, names = aligned(("a", "x", 0.5), ("b", "y", 1.0), source="c")
    if grounds is not None:
        bits = torch.tensor([grounds, BY_NAMES], dtype=torch.uint8)
        alignment = replace(alignment, grounds=bits)
    rows = body(exported((alignment, names), tmp_path, with_unmatched=True))[1:]
    surest = "StructuralMatching" if grounds is None else "LexicalMatching"
    assert [row[3] for row in rows] == [
        f"semapv:{each}" for each in (surest, justification, "StructuralMatching")
    ]


def test_the_id_depends_on_labels_and_grounds(tmp_path: Path) -> None:
    alignment, names = aligned(("a", "x", 0.5), ("b", "y", 1.0))
    texts = [Texts.of_lists(each) for each in ([["A"], ["B"]], [["A"], ["C"]], [["A", "D"], ["B"]])]
    none = Texts.of_lists([[], []])
    grounds = [torch.tensor(bits, dtype=torch.uint8) for bits in ([1, 3], [3, 1])]
    ids = [
        exported(named, tmp_path, labels=labels).read_text().split("\n")[0]
        for named, labels in (
            ((alignment, names), None),
            *(((alignment, names), Pair(each, none)) for each in texts),
            *(((replace(alignment, grounds=each), names), None) for each in grounds),
        )
    ]
    assert ids[3] == ids[1]  # only the preferred label is written
    assert len(set(ids)) == 5


def test_iris_that_differ_in_encoding_only_stay_apart(tmp_path: Path) -> None:
    named = aligned(
        ("http://ex.org/é", "http://ex.org/%C3%A9", 1.0),
        ("http://ex.org/%C3%A9", "http://ex.org/é", 1.0),
        ("http://ex.org/é%C3%A9", "http://ex.org/%c3%a9é", 1.0),
    )
    assert loaded(exported(named, tmp_path), named[1], tmp_path) == links_of(named)


@given(uris=IRIS.filter(str.isascii) | WORDS.map(lambda word: f"x:{word!a}"))
def test_a_curie_expands_to_what_it_was_made_of(uris: str) -> None:
    every = Pair(pa.array([uris], pa.large_string()), pa.array(["http://a/b", uris + "/"]))
    every = every.map(lambda side: side.cast(pa.large_string()))
    short, curie_map = curies(every)
    for before, after in every.zip(short):
        for uri, curie in zip(before.to_pylist(), after.to_pylist(), strict=True):
            prefix, _, local = curie.partition(":")
            assert curie_map[prefix] + local == uri
            assert local


def test_a_prefix_may_stand_for_what_begins_like_another(tmp_path: Path) -> None:
    path = tmp_path / "map.sssom.tsv"
    path.write_text(
        "#curie_map:\n#  a: 'b:'\n#  b: http://wrong/\n"
        "subject_id\tpredicate_id\tobject_id\na:1\towl:sameAs\tx\n"
    )
    assert loaded(path, aligned(("b:1", "x", 1.0))[1], tmp_path) == {("b:1", "x")}
