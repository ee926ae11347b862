"""Which columns are which, by the usual words in any case and order; the user is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clusterea
from clusterea.data.headers import link_header, triple_header
from clusterea.errors import InputError
from clusterea.types import Benchmark
from conftest import Ran, WriteFiles

Command = Callable[..., Ran]


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        ("Head,Relation,Tail", "Head,Relation,Tail"),
        ("tail,head,relation", "head,relation,tail"),
        ("SUBJECT,predicate,Object", "SUBJECT,predicate,Object"),
        ("from,edge,to", "from,edge,to"),
        ("Source,Target,Relation", "Source,Relation,Target"),
        ("source,type,target,weight", "source,type,target"),
        ("start,type,end", "start,type,end"),
        (":START_ID,:END_ID,:TYPE", ":START_ID,:TYPE,:END_ID"),
        ("head id,relation id,tail id", "head id,relation id,tail id"),
        ("node1,label,node2", "node1,label,node2"),
        ("h,r,t", "h,r,t"),
        ("O,P,S", "S,P,O"),
        ("subject,predicate,object,label", "subject,predicate,object"),
        (" head , relation , tail ", " head , relation , tail "),
        # Bare triples, or not clear.
        ("a,r,b", None),
        ("s,r,o", None),
        ("h,r,t,x", None),
        ("head,tail", None),
        ("source,target,confidence", None),
        ("source,target,score", None),
        ("head,relation,predicate,tail", None),
        ("head,Head,relation,tail", None),
        ("type,label,x", None),
    ],
)
def test_triples(cells: str, found: str | None) -> None:
    assert triple_header(cells.split(",")) == (None if found is None else tuple(found.split(",")))


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        ("Source,Target", "Source,Target"),
        ("confidence,TARGET,SOURCE", "SOURCE,TARGET"),
        ("source,target,score", "source,target"),
        ("subject_id,object_id", "subject_id,object_id"),
        ("left,right", "left,right"),
        ("To,From", "From,To"),
        ("entity1,entity2", "entity1,entity2"),
        ("Entity_1,Entity_2", "Entity_1,Entity_2"),
        ("E1,E2", "E1,E2"),
        ("source,target,relation", "source,target"),
        # A table of triples is not a table of links.
        ("from,edge,to", None),
        ("head,relation,tail", None),
        ("a,b", None),
        ("source,Source,target", None),
    ],
)
def test_links(cells: str, found: str | None) -> None:
    assert link_header(cells.split(",")) == (None if found is None else tuple(found.split(",")))


def triples_of(benchmark: Benchmark) -> list[tuple[str, str, str]]:
    names, relations = benchmark.names.source, benchmark.relation_names.source
    graph = benchmark.task.graphs.source
    return [(names[h], relations[r], names[t]) for h, r, t in graph.triples.tolist()]


def test_the_user_is_told(write_files: WriteFiles, clusterea_command: Command) -> None:
    folder = write_files(
        {
            "h.csv": "Tail,Relation,Head\nb,r,a\nc,r,b\n",
            "bare.csv": "x,s,y\ny,s,z\n",
            "links.tsv": "LEFT\tRIGHT\tscore\na\tx\t1\nb\ty\t1\n",
        }
    )
    ran = clusterea_command(
        "info", folder / "h.csv", folder / "bare.csv", "--links", folder / "links.tsv"
    )
    assert ran.code == 0, ran.err
    assert ran.err.splitlines() == [
        f"{folder / 'h.csv'}: columns Head, Relation, Tail.",
        f"{folder / 'bare.csv'}: no header; its columns are taken as head, relation, tail.",
        f"{folder / 'links.tsv'}: columns LEFT, RIGHT.",
        "Names: readable ids for 100 % and 100 % of entities.",
    ]
    benchmark = clusterea.load(folder / "h.csv", folder / "bare.csv", links=folder / "links.tsv")
    assert triples_of(benchmark) == [("a", "r", "b"), ("b", "r", "c")]
    assert benchmark.task.num_seeds == 2
    assert list(benchmark.notes) == ran.err.splitlines()


def test_parquet_in_any_case(write_files: WriteFiles) -> None:
    folder = write_files({"two.tsv": "x\ts\ty\n", "links": "a\tx\n"})
    table = pa.table({"TO": ["b"], "From": ["a"], "weight": [0.5], "Edge": ["r"]})
    pq.write_table(table, folder / "one.parquet")
    benchmark = clusterea.load(folder / "one.parquet", folder / "two.tsv", links=folder / "links")
    assert triples_of(benchmark) == [("a", "r", "b")]
    assert benchmark.notes[0] == f"{folder / 'one.parquet'}: columns From, Edge, TO."


class TestColumnsOfEachSide:
    @pytest.fixture
    def folder(self, write_files: WriteFiles) -> Path:
        return write_files(
            {
                "one.csv": "who,how,whom\na,r,b\n",
                "two.csv": "von,art,nach\nx,s,y\n",
                "links": "a\tx\n",
            }
        )

    def test_options(self, folder: Path, clusterea_command: Command) -> None:
        ran = clusterea_command(
            *("info", folder / "one.csv", folder / "two.csv", "--links", folder / "links"),
            *("--source-columns", "who,how,whom", "--target-columns", "von, art, nach"),
        )
        assert ran.code == 0, ran.err
        assert f"{folder / 'two.csv'}: columns von, art, nach." in ran.err

    def test_one_side_beside_both(self, folder: Path) -> None:
        benchmark = clusterea.load(
            folder / "one.csv",
            folder / "two.csv",
            links=folder / "links",
            columns=["who", "how", "whom"],
            target_columns=["von", "art", "nach"],
        )
        assert triples_of(benchmark) == [("a", "r", "b")]
        assert sorted(benchmark.names.target) == ["x", "y"]

    def test_a_column_that_is_not_there(self, folder: Path) -> None:
        with pytest.raises(InputError, match="two.csv line 1: expected the columns who, how, whom"):
            clusterea.load(
                folder / "one.csv",
                folder / "two.csv",
                links=folder / "links",
                columns=["who", "how", "whom"],
            )

    def test_two_names(self, folder: Path) -> None:
        with pytest.raises(InputError, match="^target_columns must be three names"):
            clusterea.load(
                *(folder / "one.csv", folder / "two.csv"),
                links=folder / "links",
                target_columns=["von", "nach"],
            )

    def test_a_folder(self, folder: Path) -> None:
        with pytest.raises(InputError, match="^source_columns goes with two tables"):
            clusterea.load(folder, source_columns=["who", "how", "whom"])
