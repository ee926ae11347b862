from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq
import pyoxigraph
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from named_alignments import (
    IRIS,
    SUFFIXES,
    WORDS,
    Named,
    aligned,
    alignments,
    links_of,
    loaded,
)

from clusterea.data.name_iris import NAMESPACES, to_iris
from clusterea.errors import DataError, InputError
from clusterea.export import EXPORTERS, export, find_exporter
from clusterea.types import Alignment, Names, Pair, Texts

PARIS = aligned(("Paris", "Parigi", 0.5), ("Rome", "Roma", 1.0), source="Bonn", target="Bari Pisa")
SURE = replace(PARIS[0], examples=130), PARIS[1]
BOTH = pytest.mark.parametrize(("named", "measure"), [(PARIS, "score"), (SURE, "confidence")])
ALIGN = "http://knowledgeweb.semanticweb.org/heterogeneity/alignment#"
FLOAT = pyoxigraph.NamedNode("http://www.w3.org/2001/XMLSchema#float")


def exported(named: Named, format_name: str, folder: Path) -> Path:
    path = folder / f"out{SUFFIXES[format_name]}"
    export(*named, format_name, path)
    return path


def statements(path: Path) -> list[tuple[Any, Any, Any]]:
    return [(each.subject, each.predicate, each.object) for each in pyoxigraph.parse(path=path)]


def cells(path: Path) -> set[tuple[str, str, float]]:
    """The cells of an Alignment API file, by a parser of RDF."""
    by_cell: dict[str, dict[str, Any]] = {}
    for subject, predicate, value in statements(path):
        by_cell.setdefault(str(subject), {})[predicate.value.removeprefix(ALIGN)] = value
    found = [cell for cell in by_cell.values() if "entity1" in cell]
    assert all(cell["relation"].value == "=" for cell in found)
    assert all(cell["measure"].datatype == FLOAT for cell in found)
    return {
        (cell["entity1"].value, cell["entity2"].value, float(cell["measure"].value))
        for cell in found
    }


class TestRoundTrip:
    @pytest.mark.parametrize("format_name", EXPORTERS)
    @given(named=alignments(WORDS | IRIS | st.text(st.characters(codec="utf-8"))))
    def test_any_name_loads_again(self, format_name: str, named: Named) -> None:
        with TemporaryDirectory() as folder:
            path = exported(named, format_name, Path(folder))
            assert loaded(path, named[1], Path(folder)) == links_of(named)

    def test_cells_of_another_relation_are_no_links(self, tmp_path: Path) -> None:
        """As others write them: a namespace without its end, and no datatype."""
        cell = (
            '<map><Cell><entity1 rdf:resource="http://a/{0}"/><entity2 rdf:resource="http://b/{0}"/>'
            "<measure>1.0</measure><relation>{1}</relation></Cell></map>"
        )
        path = tmp_path / "reference.rdf"
        path.write_text(
            f'<rdf:RDF xmlns="{ALIGN[:-1]}" '
            'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><Alignment>'
            + cell.format(1, "=")
            + cell.format(2, "&lt;")
            + "</Alignment></rdf:RDF>"
        )
        _, names = aligned(("http://a/1", "http://b/1", 1.0), ("http://a/2", "http://b/2", 1.0))
        assert loaded(path, names, tmp_path) == {("http://a/1", "http://b/1")}


class TestTsv:
    @BOTH
    def test_the_surest_comes_first(self, named: Named, measure: str, tmp_path: Path) -> None:
        text = exported(named, "tsv", tmp_path).read_text()
        assert text == f"source\ttarget\t{measure}\nRome\tRoma\t1\nParis\tParigi\t0.5\n"

    def test_equally_sure_links_keep_their_order(self, tmp_path: Path) -> None:
        named = aligned(*((f"a{i}", f"b{i}", 0.25) for i in range(50)))
        lines = exported(named, "tsv", tmp_path).read_text().splitlines()[1:]
        assert lines == [f"a{i}\tb{i}\t0.25" for i in range(50)]

    @given(named=alignments(WORDS))
    def test_confidence_is_written_to_the_last_bit(self, named: Named) -> None:
        with TemporaryDirectory() as folder:
            path = exported(named, "tsv", Path(folder))
            lines = path.read_bytes().decode().split("\n")[1:-1]
            written = torch.tensor([float(line.split("\t")[2]) for line in lines])
        assert torch.equal(written, named[0].confidence.sort(descending=True).values)

    def test_names_are_never_quoted(self, tmp_path: Path) -> None:
        named = aligned(('"a, b"', "it's \\", 1.0))
        rows = exported(named, "tsv", tmp_path).read_text().splitlines()
        assert rows[1] == '"a, b"\tit\'s \\\t1'
        read = list(csv.reader(rows, delimiter="\t", quoting=csv.QUOTE_NONE))
        assert read[1][:2] == ['"a, b"', "it's \\"]

    def test_a_name_that_would_break_a_line_is_an_iri(self, tmp_path: Path) -> None:
        named = aligned(("a\tb", "c\r\nd", 1.0), ("urn:clusterea:source:a%09b", "50%\n", 0.5))
        lines = exported(named, "tsv", tmp_path).read_text().splitlines()
        assert lines[1] == "urn:clusterea:source:a%09b\turn:clusterea:target:c%0D%0Ad\t1"
        assert lines[2] == (
            "urn:clusterea:source:urn:clusterea:source:a%2509b\turn:clusterea:target:50%25%0A\t0.5"
        )


class TestParquet:
    @BOTH
    def test_columns(self, named: Named, measure: str, tmp_path: Path) -> None:
        table = pq.read_table(exported(named, "parquet", tmp_path))
        assert table.to_pydict() == {
            "source": ["Rome", "Paris"],
            "target": ["Roma", "Parigi"],
            measure: [1.0, 0.5],
        }
        told = table.schema.metadata
        assert told[b"confidence_examples"].decode() == str(named[0].examples)
        assert told[b"confidence_note"].decode() == named[0].confidence_note

    def test_it_holds_tabs_and_line_ends(self, tmp_path: Path) -> None:
        named = aligned(("a\tb", "c\nd", 1.0))
        path = exported(named, "parquet", tmp_path)
        assert loaded(path, named[1], tmp_path) == {("a\tb", "c\nd")}


class TestRdf:
    def test_iris_are_written_as_they_are(self, tmp_path: Path) -> None:
        named = aligned(("http://ex.org/a?b=%20&c='d'#é", "http://ex.org/東", 1.0))
        text = exported(named, "ntriples", tmp_path).read_text()
        assert text == (
            "<http://ex.org/a?b=%20&c='d'#é> <http://www.w3.org/2002/07/owl#sameAs> "
            "<http://ex.org/東> .\n"
        )

    def test_other_names_are_put_into_a_namespace_of_their_graph(self, tmp_path: Path) -> None:
        named = aligned(("New York", "http://ex.org/no iri", 1.0))
        ((subject, _, value),) = statements(exported(named, "ntriples", tmp_path))
        assert subject.value == "urn:clusterea:source:New%20York"
        assert value.value == "urn:clusterea:target:http:%2F%2Fex.org%2Fno%20iri"

    @given(named=alignments(st.text(st.characters(codec="utf-8")) | WORDS | IRIS))
    def test_a_real_parser_reads_both_formats_alike(self, named: Named) -> None:
        alignment, names = named
        iris = names.zip(NAMESPACES).map(lambda side: to_iris(side[0].arrow, side[1]).to_pylist())
        links = {(iris.source[a], iris.target[b]) for a, b in alignment.links.tolist()}
        with TemporaryDirectory() as folder:
            same = statements(exported(named, "ntriples", Path(folder)))
            found = cells(exported(named, "oaei", Path(folder)))
        assert {(subject.value, value.value) for subject, _, value in same} == links
        assert {cell[:2] for cell in found} == links
        measures = sorted(alignment.confidence.tolist())
        if len(found) == len(measures):
            read = torch.tensor(sorted(cell[2] for cell in found))
            assert torch.equal(read, torch.tensor(measures))

    def test_the_alignment_says_what_it_is(self, tmp_path: Path) -> None:
        said = {
            predicate.value.removeprefix(ALIGN): value.value
            for _, predicate, value in statements(exported(PARIS, "oaei", tmp_path))
        }
        assert (said["xml"], said["level"], said["type"]) == ("yes", "0", "11")
        assert (said["onto1"], said["onto2"]) == ("urn:clusterea:source", "urn:clusterea:target")

    @BOTH
    def test_a_comment_says_what_the_measure_is(
        self, named: Named, measure: str, tmp_path: Path
    ) -> None:
        text = exported(named, "oaei", tmp_path).read_text()
        assert f"<!-- {named[0].confidence_note} -->" in text
        assert measure in named[0].confidence_note.lower()
        assert len(cells(tmp_path / "out.rdf")) == 2

    def test_many_to_many_is_said(self, tmp_path: Path) -> None:
        links = torch.tensor([[0, 0], [0, 1]])
        names = Pair(Names(["a"]), Names(["x", "y"]))
        none = torch.empty(0, dtype=torch.int64)
        alignment = Alignment(links, torch.ones(2), Pair(none, none))
        path = exported((alignment, names), "oaei", tmp_path)
        assert "<type>**</type>" in path.read_text()
        assert len(cells(path)) == 2


class TestLabels:
    LABELS = Pair(
        Texts.of_lists([["Paris\t", "Lutetia"], [], ["Bonn"]]),
        Texts.of_lists([[], ["Roma"], [], []]),
    )

    def test_parquet_has_them_in_the_last_columns(self, tmp_path: Path) -> None:
        path = tmp_path / "out.parquet"
        export(*PARIS, "parquet", path, labels=self.LABELS)
        assert pq.read_table(path).to_pydict() == {
            "source": ["Rome", "Paris"],
            "target": ["Roma", "Parigi"],
            "score": [1.0, 0.5],
            "source_label": [None, "Paris\t"],
            "target_label": ["Roma", None],
        }
        assert loaded(path, PARIS[1], tmp_path) == links_of(PARIS)

    @pytest.mark.parametrize("format_name", ["tsv", "ntriples", "oaei"])
    def test_other_formats_stay_as_they_are(self, format_name: str, tmp_path: Path) -> None:
        path = tmp_path / "labeled"
        export(*PARIS, format_name, path, labels=self.LABELS)
        assert path.read_bytes() == exported(PARIS, format_name, tmp_path).read_bytes()


class TestExport:
    def test_every_format_can_be_empty(self, tmp_path: Path) -> None:
        empty = aligned(source="a b", target="x")
        paths = {name: exported(empty, name, tmp_path) for name in EXPORTERS}
        assert paths["tsv"].read_text() == "source\ttarget\tscore\n"
        assert pq.read_schema(paths["parquet"]).names == ["source", "target", "score"]
        assert paths["ntriples"].read_text() == ""
        assert "sssom:NoTermFound" not in paths["sssom"].read_text()
        assert cells(paths["oaei"]) == set()

    def test_nothing_at_all(self, tmp_path: Path) -> None:
        for name in EXPORTERS:
            assert exported(aligned(), name, tmp_path).is_file()

    @pytest.mark.parametrize("format_name", EXPORTERS)
    def test_more_links_than_a_batch(
        self, format_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        many = aligned(*((f"a{i}", f"é{i}", i / 100) for i in range(100)), target="lone one")
        whole = exported(many, format_name, tmp_path).read_bytes()
        monkeypatch.setattr("clusterea.export.rows.BATCH", 7)
        cut = exported(many, format_name, tmp_path)
        if format_name == "parquet":
            assert pq.read_table(cut).num_rows == 100
        else:
            assert cut.read_bytes() == whole

    def test_names_cut_from_longer_ones(self, tmp_path: Path) -> None:
        """An Arrow array may begin in the middle of another's memory."""
        alignment, names = PARIS
        longer = names.map(lambda side: Names(["before é", *side, "after"])[1:-1])
        for name in EXPORTERS:
            expected = exported(PARIS, name, tmp_path).read_bytes()
            assert exported((alignment, longer), name, tmp_path).read_bytes() == expected

    def test_unknown_format(self) -> None:
        with pytest.raises(InputError, match="unknown format 'owl'; choose one of tsv, parquet"):
            find_exporter("owl")

    def test_a_file_that_is_there_is_replaced_whole(self, tmp_path: Path) -> None:
        path = tmp_path / "deep" / "out.tsv"
        export(*PARIS, "tsv", path)
        export(*aligned(), "tsv", path)
        assert path.read_text() == "source\ttarget\tscore\n"
        assert [each.name for each in path.parent.iterdir()] == ["out.tsv"]

    def test_a_failed_write_leaves_what_was_there(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def failing(_alignment: Alignment, _names: Pair[Names], path: Path, _: object) -> None:
            path.write_text("half")
            raise KeyboardInterrupt

        path = tmp_path / "out.tsv"
        path.write_text("before")
        monkeypatch.setitem(EXPORTERS, "tsv", failing)
        with pytest.raises(KeyboardInterrupt):
            export(*PARIS, "tsv", path)
        assert path.read_text() == "before"
        assert list(tmp_path.iterdir()) == [path]

    def test_a_folder_is_no_place_for_a_file(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="can't be written: Is a directory"):
            export(*PARIS, "ntriples", tmp_path)
