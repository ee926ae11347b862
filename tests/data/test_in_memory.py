"""Graphs and links as Python values: each form gives the benchmark that a file of it gives."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import clusterea
from clusterea.errors import DataError, InputError
from clusterea.types import Benchmark, IntArray, Pair

TRIPLES = [("a", "r", "b"), ("b", "s", "c"), ("c", "r", "a"), ("a", "s", "c")]
OTHERS = [("x", "p", "y"), ("y", "q", "z")]
LINKS = [("a", "x"), ("b", "y")]
HEADER = ("head", "relation", "tail")
ENDS = {"relation": ["r"], "tail": ["t"]}


def columns(rows: list[tuple[str, ...]], header: tuple[str, ...] = HEADER) -> dict[str, list[str]]:
    return {name: list(cells) for name, cells in zip(header, zip(*rows, strict=True), strict=True)}


def pandas_frame(rows: list[Any], header: tuple[str, ...] = HEADER) -> Any:
    return pytest.importorskip("pandas").DataFrame(rows, columns=list(header))


def polars_frame(rows: list[Any], header: tuple[str, ...] = HEADER) -> Any:
    return pytest.importorskip("polars").DataFrame(rows, schema=list(header), orient="row")


def networkx_graph(rows: list[Any]) -> Any:
    graph = pytest.importorskip("networkx").MultiDiGraph()
    for head, relation, tail in rows:
        graph.add_edge(head, tail, relation=relation)
    return graph


GRAPHS: dict[str, Callable[[list[Any]], Any]] = {
    "list": lambda rows: rows,
    "lists in a list": lambda rows: [list(row) for row in rows],
    "iterator": iter,
    "array": np.array,
    "array of objects": lambda rows: np.array(rows, dtype=object),
    "Arrow": lambda rows: pa.table(columns(rows)),
    "Arrow batch": lambda rows: pa.table(columns(rows)).to_batches()[0],
    "Arrow with other words": lambda rows: pa.table(
        {"weight": [0.5] * len(rows)} | columns(rows, ("subject", "predicate", "object"))
    ),
    "Arrow dictionaries": lambda rows: pa.table(
        {name: pa.array(cells).dictionary_encode() for name, cells in columns(rows).items()}
    ),
    "pandas": pandas_frame,
    "pandas objects": lambda rows: pandas_frame(rows).astype(object),
    "pandas categories": lambda rows: pandas_frame(rows).astype("category"),
    "pandas on Arrow": lambda rows: pandas_frame(rows).convert_dtypes(dtype_backend="pyarrow"),
    "pandas without names": lambda rows: pytest.importorskip("pandas").DataFrame(rows),
    "pandas, filtered": lambda rows: pandas_frame([("n", "n", "n"), *rows])[1:],
    "polars": polars_frame,
    "polars categories": lambda rows: polars_frame(rows).cast(
        pytest.importorskip("polars").Categorical
    ),
    "polars without names": lambda rows: pytest.importorskip("polars").DataFrame(
        rows, orient="row"
    ),
}
LINK_FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "list": lambda rows: rows,
    "dict": dict,
    "items": lambda rows: dict(rows).items(),
    "array": np.array,
    "Arrow": lambda rows: pa.table(columns(rows, ("source", "target"))),
    "pandas": lambda rows: pandas_frame(rows, ("source", "target")),
    "polars, SSSOM words": lambda rows: polars_frame(rows, ("subject_id", "object_id")),
}


@pytest.fixture
def from_files(tmp_path: Path) -> Benchmark:
    for name, rows in (("one.tsv", TRIPLES), ("other.tsv", OTHERS), ("links.tsv", LINKS)):
        (tmp_path / name).write_text("".join("\t".join(row) + "\n" for row in rows))
    return clusterea.load(
        tmp_path / "one.tsv", tmp_path / "other.tsv", links=tmp_path / "links.tsv"
    )


def assert_same(one: Benchmark, other: Benchmark) -> None:
    assert one.names.map(list) == other.names.map(list)
    assert one.relation_names.map(list) == other.relation_names.map(list)
    for graph, twin in one.task.graphs.zip(other.task.graphs):
        assert np.array_equal(graph.triples, twin.triples)
    assert np.array_equal(one.task.seeds, other.task.seeds)
    for keys, twins in one.task.tie_keys.zip(other.task.tie_keys):
        assert np.array_equal(keys, twins)


@pytest.mark.parametrize("form", GRAPHS)
def test_a_graph_in_memory_is_read_as_its_file(form: str, from_files: Benchmark) -> None:
    loaded = clusterea.load(GRAPHS[form](TRIPLES), GRAPHS[form](OTHERS), links=LINKS)
    assert_same(loaded, from_files)
    assert loaded.format == "memory"


@pytest.mark.parametrize("form", LINK_FORMS)
def test_links_in_memory_are_read_as_their_file(form: str, from_files: Benchmark) -> None:
    links = LINK_FORMS[form](LINKS)
    assert_same(clusterea.load(TRIPLES, OTHERS, links=links), from_files)


def test_a_file_and_a_value_go_together(tmp_path: Path, from_files: Benchmark) -> None:
    loaded = clusterea.load(tmp_path / "one.tsv", OTHERS, links=str(tmp_path / "links.tsv"))
    assert_same(loaded, from_files)


def named(loaded: Benchmark, links: IntArray) -> list[tuple[str, str]]:
    source, target = loaded.names
    return [(source[left], target[right]) for left, right in links.tolist()]


def test_seeds_and_test_links_in_memory() -> None:
    loaded = clusterea.load(TRIPLES, OTHERS, seeds={"a": "x"}, test_links=[("b", "y")])
    assert named(loaded, loaded.task.seeds) == [("a", "x")]
    assert named(loaded, loaded.test_links) == [("b", "y")]
    split = clusterea.load(TRIPLES, OTHERS, links=LINKS, seeds_share=0.5)
    assert named(split, split.test_links) == [("b", "y")]


@pytest.mark.parametrize(
    "rows",
    [
        [(1, 7, 2), (2, 7, 3)],
        np.array([[1, 7, 2], [2, 7, 3]]),
        pa.table({"head": [1, 2], "relation": [7, 7], "tail": [2, 3]}),
        [(1, "7", 2), ("2", 7, np.int32(3))],
    ],
)
def test_names_may_be_integers(rows: Any) -> None:
    loaded = clusterea.load(rows, OTHERS, links=[(1, "x")])
    assert sorted(loaded.names.source) == ["1", "2", "3"]
    assert loaded.task.num_seeds == 1


def test_categories_may_be_integers() -> None:
    frame = pandas_frame([(1, 7, 2), (2, 7, 3)]).astype("category")
    assert sorted(clusterea.load(frame, OTHERS, links={1: "x"}).names.source) == ["1", "2", "3"]


def test_columns_are_named_as_for_files() -> None:
    frame = pandas_frame(TRIPLES, ("von", "wie", "nach"))
    other = pandas_frame(OTHERS, ("von", "wie", "nach"))
    loaded = clusterea.load(frame, other, links=LINKS, columns=("von", "wie", "nach"))
    assert loaded.task.graphs.source.num_triples == 4
    with pytest.raises(DataError, match="^source: expected the columns head, .*; got von, wie,"):
        clusterea.load(frame, other, links=LINKS)


def test_each_side_has_columns_of_its_own() -> None:
    frame = pandas_frame(TRIPLES, ("von", "wie", "nach"))
    other = pandas_frame(OTHERS, ("From", "Edge", "To"))
    loaded = clusterea.load(frame, other, links=LINKS, source_columns=("von", "wie", "nach"))
    assert loaded.task.graphs.map(lambda graph: graph.num_triples) == Pair(4, 2)


class TestNetworkX:
    def relations(self, graph: Any) -> list[tuple[str, str, str]]:
        loaded = clusterea.load(graph, OTHERS, links=LINKS)
        entities, relations = loaded.names.source, loaded.relation_names.source
        return [
            (entities[head], relations[relation], entities[tail])
            for head, relation, tail in loaded.task.graphs.source.triples.tolist()
        ]

    def test_edges_are_triples(self) -> None:
        assert sorted(self.relations(networkx_graph(TRIPLES))) == sorted(TRIPLES)

    @pytest.mark.parametrize("word", ["relation", "predicate", "label", "type"])
    def test_the_relation_is_an_attribute(self, word: str) -> None:
        graph = pytest.importorskip("networkx").DiGraph()
        graph.add_edge("a", "b", **{word: "knows", "weight": 3})
        assert self.relations(graph) == [("a", "knows", "b")]

    def test_or_the_key_of_the_edge(self) -> None:
        graph = pytest.importorskip("networkx").MultiDiGraph()
        graph.add_edge("a", "b", key="knows")
        graph.add_edge("a", "b", key="likes")
        assert self.relations(graph) == [("a", "knows", "b"), ("a", "likes", "b")]

    def test_or_one_for_all_that_have_none(self) -> None:
        networkx = pytest.importorskip("networkx")
        for graph in (networkx.Graph(), networkx.DiGraph(), networkx.MultiGraph()):
            graph.add_edge("a", "b")
            assert self.relations(graph) == [("a", "edge", "b")]

    def test_nodes_that_have_no_name_are_refused(self) -> None:
        graph = pytest.importorskip("networkx").DiGraph([(("a", 1), "b")])
        with pytest.raises(
            DataError, match="a string or an integer as head, got .'a', 1. in row 1"
        ):
            clusterea.load(graph, OTHERS, links=LINKS)


class TestRdflib:
    TURTLE = """
        @prefix e: <http://e/> .
        e:a e:r e:b ; e:name "A" . e:b e:s [ e:r e:c ] .
    """

    def graph(self) -> Any:
        return pytest.importorskip("rdflib").Graph().parse(data=self.TURTLE, format="turtle")

    def test_a_graph_is_read_as_its_file(self, tmp_path: Path) -> None:
        (tmp_path / "graph.ttl").write_text(self.TURTLE)
        links = [("http://e/a", "x")]
        file = clusterea.load(tmp_path / "graph.ttl", OTHERS, links=links)
        value = clusterea.load(self.graph(), OTHERS, links=links)
        assert set(value.names.source) == set(file.names.source)
        assert value.dropped == file.dropped == {"source triples with a literal": 1}
        assert value.task.graphs.source.num_triples == 3
        assert value.format == "rdf"
        for loaded in (file, value):
            entities = loaded.names.source
            assert [entities[each] for each in loaded.task.structural.source] == ["_:b0"]

    def test_identical_iris_are_known_pairs_where_both_are_rdf(self) -> None:
        loaded = clusterea.load(self.graph(), self.graph())
        assert loaded.seeds_from == {"names": 0, "iris": 3}
        with pytest.raises(InputError, match="no IRI is in both graphs"):
            clusterea.load(self.graph(), OTHERS)

    def test_a_dataset_is_the_union_of_its_graphs(self) -> None:
        rdflib = pytest.importorskip("rdflib")
        dataset = rdflib.Dataset()
        namespace = rdflib.Namespace("http://e/")
        dataset.graph(namespace.g).add((namespace.a, namespace.r, namespace.b))
        dataset.graph(namespace.h).add((namespace.b, namespace.r, namespace.c))
        loaded = clusterea.load(dataset, OTHERS, links=[("http://e/a", "x")])
        assert loaded.task.graphs.source.num_triples == 2

    def test_what_is_no_iri_is_refused(self) -> None:
        rdflib = pytest.importorskip("rdflib")
        graph = rdflib.Graph()
        graph.add((rdflib.URIRef("no iri"), rdflib.URIRef("http://e/r"), rdflib.BNode()))
        with pytest.raises(DataError, match="^source: expected RDF terms, got .*no iri"):
            clusterea.load(graph, OTHERS, links=LINKS)


def missing(form: str) -> Any:
    if form == "polars":
        return polars_frame([("a", "r", "b"), ("a", "r", None)])
    frame = pandas_frame([("a", "r", "b"), ("a", "r", None)])
    if form == "numbers":  # with a missing value they become floating point
        return pandas_frame([(1, 7, 2), (1, 7, None)])
    return frame.astype({"text": "str", "objects": "object", "categories": "category"}[form])


@pytest.mark.parametrize("form", ["text", "objects", "categories", "numbers", "polars"])
def test_a_missing_value_is_an_error_with_its_row(form: str) -> None:
    with pytest.raises(DataError, match="^source: expected .*tail, got .* in row 2") as caught:
        clusterea.load(missing(form), OTHERS, links=LINKS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (["abc"], "expected rows of head, relation, tail; got 'abc' in row 1"),
        ([("a", "r", "b"), ("a", "r")], r"got \('a', 'r'\) in row 2"),
        ([("a", "r", 1.5)], "a string or an integer as tail, got 1.5 in row 1"),
        ([("a", True, "b")], "a string or an integer as relation, got True in row 1"),
        ([("a", "", "b")], "a string or an integer as relation, got '' in row 1"),
        ([("a", "r", "\ud800")], "expected a tail in Unicode"),
        ([], "expected triples between entities, got none"),
        (pa.table({name: [] for name in HEADER}), "expected triples between entities, got none"),
        (7, "expected a path, a table, rows of .*; got int"),
        ({"a": "b"}, "expected a path, a table, rows of .*; got dict"),
        (np.array(7), "expected a path, a table, rows of .*; got numpy.ndarray"),
        (np.arange(6).reshape(3, 2), "expected rows of head, relation, tail"),
        (pa.array([1, 2]), "expected a table, got pyarrow"),
        (pa.table({"head": ["a"]}), "expected the columns head, relation, tail; got head"),
        (pa.table({"head": [1.5], "relation": [1], "tail": [1]}), "in column head, got double"),
        (
            pa.table({"head": pa.array([b"\xff"]).cast(pa.string(), safe=False)} | ENDS),
            "expected a head in Unicode",
        ),
        (pa.table([["a"]] * 4, names=[*HEADER, "tail"]), "got head, relation, tail, tail"),
    ],
)
def test_what_is_no_graph_is_refused_in_one_line(graph: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"^source: .*{message}") as caught:
        clusterea.load(graph, OTHERS, links=LINKS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"links": 7}, "^links: expected a path, a table, a dict .*; got int"),
        ({"links": {}}, "^links: expected links, got none"),
        ({"links": []}, "^links: expected links, got none"),
        ({"links": np.empty((0, 2))}, "^links: expected links, got none"),
        ({"links": pa.table({"source": [], "target": []})}, "^links: expected links, got none"),
        ({"links": np.array(7)}, "^links: expected a path, a table, a dict .*; got numpy.ndarray"),
        ({"seeds": LINKS, "test_links": []}, "^test_links: expected links, got none"),
        ({"links": [("a",)]}, r"^links: expected rows of source, target; got \('a',\) in row 1"),
        ({"links": [("n", "n")]}, "^links: expected links between entities of the two graphs"),
        ({"links": {"a": None}}, "^links: expected a string or an integer as target, got None"),
        ({"links": pa.table({"a": ["a"]})}, "^links: expected the columns source, target"),
        ({"seeds": [("a", "x"), ("a", "y")]}, "^seeds: expected one counterpart .* for 'a'"),
        (
            {"seeds": [("a", "x")], "test_links": {"a": "y"}},
            "^test_links: expected test links of entities that no seed decides",
        ),
        (
            {"seeds_from": "links"},
            "^two graphs need links, or else seeds with or without test_links",
        ),
        (
            {},
            "^there is no known pair to learn from: no name belongs to exactly one entity in "
            r"each graph; no IRI is in both graphs\. Give pairs that are known with links\.$",
        ),
        (
            {"links": LINKS, "columns": ("a", "b", "c")},
            "^source: columns goes with a table; got list",
        ),
    ],
)
def test_what_are_no_links_is_refused(options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        clusterea.load(TRIPLES, OTHERS, **options)


def test_one_graph_alone_is_refused() -> None:
    with pytest.raises(InputError, match="give source, target and links"):
        clusterea.load(TRIPLES)


def test_none_of_these_libraries_is_needed() -> None:
    code = (
        "import sys\n"
        # pyarrow looks for pandas by itself, and lives without.
        "for name in ('polars', 'networkx', 'rdflib', 'torch'):\n"
        "    sys.modules[name] = None\n"  # importing it now fails
        "import numpy, clusterea\n"
        "others = numpy.array([['x', 's', 'y']])\n"
        "print(clusterea.load([('a', 'r', 'b')], others, links={'a': 'x'}))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("Benchmark(1 seeds")
