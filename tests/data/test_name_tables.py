"""Tables of names: formats, headers, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clusterea
from clusterea.errors import DataError, InputError
from clusterea.types import Benchmark
from conftest import Ran, WriteFiles

SOURCE = [("a", "r", "b"), ("b", "r", "c")]
TARGET = [("x", "s", "y"), ("y", "s", "z")]
LINKS = [("a", "x")]
OTHER = {"x": "Xaver"}
ROWS = [("a", "Anna"), ("b", "Bert"), ("a", "Ann")]
WANTED = {"a": ["Anna", "Ann"], "b": ["Bert"], "c": []}


def loaded(table: Any, **options: Any) -> Benchmark:
    return clusterea.load(SOURCE, TARGET, links=LINKS, name_files=(table, OTHER), **options)


def names(benchmark: Benchmark) -> dict[str, list[str]]:
    assert benchmark.labels is not None
    texts = benchmark.labels.source
    return {name: texts.of(number) for number, name in enumerate(benchmark.names.source)}


def lines(delimiter: str, header: str = "", end: str = "\n") -> str:
    rows = [delimiter.join(row) for row in ROWS]
    return end.join([header, *rows] if header else rows) + end


class TestFormats:
    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("n.tsv", lines("\t")),
            ("n.tsv", lines("\t", "entity\tname")),
            ("n.tsv", lines("\t", end="\r\n")),
            ("n.tsv", "\ufeff" + lines("\t", "entity\tname", end="\r\n")),
            ("n.csv", lines(",")),
            ("n.csv", lines(",", "ID,Label")),
            ("n.csv", lines(", ")),  # spaces around a name do not belong to it
            ("n.txt", lines("\t", "uri\ttitle")),
        ],
    )
    def test_text(self, name: str, content: str, write_files: WriteFiles) -> None:
        path = write_files({name: content}) / name
        assert names(loaded(path)) == WANTED
        assert names(loaded(str(path))) == WANTED

    def test_more_columns_in_any_order(self, write_files: WriteFiles) -> None:
        content = "score,Name,lang,IRI\n1,Anna,de,a\n2,Bert,de,b\n3,Ann,en,a\n"
        assert names(loaded(write_files({"n.csv": content}) / "n.csv")) == WANTED

    def test_parquet(self, tmp_path: Path) -> None:
        entities, texts = zip(*ROWS, strict=True)
        path = tmp_path / "n.parquet"
        pq.write_table(pa.table({"label": texts, "id": entities}), path)
        assert names(loaded(path)) == WANTED

    def test_values_in_memory(self) -> None:
        entities, texts = zip(*ROWS, strict=True)
        assert names(loaded(ROWS)) == WANTED
        assert names(loaded(pa.table({"name": texts, "entity": entities}))) == WANTED
        assert names(loaded({"a": "Anna", "b": "Bert"})) == WANTED | {"a": ["Anna"]}

    def test_integers_are_entities_too(self) -> None:
        benchmark = clusterea.load(
            [(1, "r", 2)], TARGET, links=[(1, "x")], name_files=({1: "Anna"}, OTHER)
        )
        assert names(benchmark) == {"1": ["Anna"], "2": []}


class TestWords:
    @pytest.mark.parametrize("entity", ["entity", "IRI", "uri", "id", "Entity_ID", "node"])
    @pytest.mark.parametrize("name", ["name", "Label", "title", "text", "pref_label"])
    def test_of_a_header(self, entity: str, name: str, write_files: WriteFiles) -> None:
        folder = write_files({"n.tsv": lines("\t", f"{entity}\t{name}")})
        benchmark = loaded(folder / "n.tsv")
        assert names(benchmark) == WANTED
        assert f"{folder / 'n.tsv'}: columns {entity}, {name}." in benchmark.notes

    def test_others_are_no_header(self, write_files: WriteFiles) -> None:
        folder = write_files({"n.tsv": lines("\t", "a\tfirst")})
        benchmark = loaded(folder / "n.tsv")
        assert names(benchmark) == WANTED | {"a": ["first", "Anna", "Ann"]}
        note = f"{folder / 'n.tsv'}: no header; its columns are taken as entity, name."
        assert note in benchmark.notes


def test_names_of_unknown_entities_are_noted(write_files: WriteFiles) -> None:
    folder = write_files({"n.tsv": lines("\t") + "nobody\tN\nno one\tN\n"})
    benchmark = loaded(folder / "n.tsv")
    assert names(benchmark) == WANTED
    assert f"{folder / 'n.tsv'}: 2 rows are of entities in no triple." in benchmark.notes


def test_names_of_spaces_are_none(write_files: WriteFiles) -> None:
    folder = write_files({"n.tsv": "a\t \na\tAnna\nb\t\u3000\n"})
    assert names(loaded(folder / "n.tsv")) == {"a": ["Anna"], "b": [], "c": []}


def test_a_cell_may_have_line_breaks_and_nul(write_files: WriteFiles) -> None:
    folder = write_files({"n.csv": 'id,label\na,"An\nna"\nb,B\0b\n'})
    benchmark = loaded(folder / "n.csv")
    assert names(benchmark) == {"a": ["An\nna"], "b": ["B\0b"], "c": []}
    assert benchmark.task.names is not None
    compared = dict(zip(benchmark.names.source, range(3), strict=True))
    assert benchmark.task.names.source.of(compared["a"]) == ["an na"]


def test_a_table_counts_more_than_the_labels_of_the_graph(write_files: WriteFiles) -> None:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    folder = write_files(
        {"a.nt": f'<u:a> <u:r> <u:b> .\n<u:a> {label} "of graph" .\n<u:b> {label} "B" .\n'}
    )
    benchmark = clusterea.load(
        folder / "a.nt", TARGET, links=[("u:a", "x")], name_files=({"u:a": "of table"}, OTHER)
    )
    assert names(benchmark) == {"u:a": ["of table"], "u:b": ["B"]}


def test_empty_names_are_skipped(write_files: WriteFiles) -> None:
    path = write_files({"n.tsv": "a\t\nb\tBert\nb\t\n"}) / "n.tsv"
    found = names(loaded(path))
    assert found["a"] == []
    assert found["b"] == ["Bert"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("n.tsv", "a\tAnna\n\tBert\n", "n.tsv line 2: expected a entity, got an empty cell"),
        ("n.tsv", "a\tA\tx\n", "n.tsv line 1: expected 2 tab-separated columns, got 3. A table of"),
        ("n.tsv", "q\tA\n", "n.tsv: expected names of entities of the graph, got none; .* of 'q'"),
        ("n.tsv", "", "n.tsv: expected .*empty"),
        ("n.tsv", "entity\tname\n", "n.tsv: expected lines of entity, name, got"),
        (
            "n.nt",
            "<u:a> <u:b> <u:c> .\n",
            "n.nt: expected a table of entity and name, got ntriples",
        ),
        ("n.tsv", b"a\t\xff\n", "n.tsv.*UTF-8"),
    ],
)
def test_files_that_are_refused(
    name: str, content: str | bytes, message: str, write_files: WriteFiles
) -> None:
    path = write_files({name: content}) / name
    with pytest.raises(DataError, match=message) as raised:
        loaded(path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "^the first of name_files: expected names, got none"),
        (7, "^the first of name_files: expected a path, a table, a dict of entity .* got int"),
        ({"a": ["Anna"]}, "^the first of name_files: expected a string .* as name, got \\['Anna'"),
        ({"a": None}, "^the first of name_files: expected a string .* as name, got None in row 1"),
        ({"q": "Q"}, "^the first of name_files: expected names of entities of the graph, got none"),
        (pa.table({"a": ["a"], "b": ["b"]}), "^the first .* expected the columns entity, name"),
    ],
)
def test_values_that_are_refused(table: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        loaded(table)


@pytest.mark.parametrize("given", [OTHER, "n.tsv", ("n.tsv",), (OTHER, OTHER, OTHER), 5])
def test_there_are_two(given: Any) -> None:
    with pytest.raises(InputError, match="^name_files must be two tables: .* Got .* instead"):
        clusterea.load(SOURCE, TARGET, links=LINKS, name_files=given)


@pytest.mark.parametrize("how", ["none", "iris"])
def test_they_go_with_labels(how: str) -> None:
    with pytest.raises(InputError, match=f"^name_files goes with names auto or labels, not {how}"):
        loaded(OTHER, names=how)


def test_on_the_command_line(
    write_files: WriteFiles, clusterea_command: Callable[..., Ran]
) -> None:
    folder = write_files(
        {
            "a.tsv": "1\tr\t2\n2\tr\t3\n",
            "b.tsv": "4\ts\t5\n5\ts\t6\n",
            "a-names.tsv": "1\tAnna\n2\tBert\n",
            "b-names.tsv": "4\tANNA\n5\tEve\n",
        }
    )
    graphs = [folder / "a.tsv", folder / "b.tsv"]
    tables = [folder / "a-names.tsv", folder / "b-names.tsv"]
    ran = clusterea_command("info", *graphs, "--name-files", *tables)
    assert ran.code == 0, ran.err
    assert "Names: labels for 67 % and 67 % of entities." in ran.err
    assert "Seeds: 1 (1 from equal names). Test links: 0." in ran.out
    swapped = clusterea_command("info", *graphs, "--name-files", *tables[::-1])
    assert swapped.code == 2
    assert "b-names.tsv: expected names of entities of the graph, got none" in swapped.err
