"""Every way in, from files to a `Benchmark`."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clusterea
from clusterea.errors import DataError, InputError
from clusterea.types import Benchmark, IntArray
from conftest import WriteFiles

SOURCE = [("a", "r", "b"), ("b", "r", "c"), ("c", "q", "a"), ("d", "q", "a")]
TARGET = [("x", "s", "y"), ("y", "s", "z"), ("z", "s", "x"), ("w", "t", "x")]
LINKS = [("a", "x"), ("b", "y"), ("c", "z"), ("d", "w")]


def lines(rows: Sequence[tuple[str, ...]], delimiter: str = "\t") -> str:
    return "".join(delimiter.join(row) + "\n" for row in rows)


def named_triples(benchmark: Benchmark) -> list[set[tuple[str, ...]]]:
    """Both sides' triples by name: what must survive every way in."""
    return [
        {(entities[h], relations[r], entities[t]) for h, r, t in graph.triples.tolist()}
        for graph, entities, relations in zip(
            benchmark.task.graphs, benchmark.names, benchmark.relation_names, strict=True
        )
    ]


def named(links: IntArray, benchmark: Benchmark) -> list[tuple[str, str]]:
    source, target = benchmark.names
    return [(source[s], target[t]) for s, t in links.tolist()]


def all_links(benchmark: Benchmark) -> list[tuple[str, str]]:
    return named(benchmark.task.seeds, benchmark) + named(benchmark.test_links, benchmark)


def test_both_tables_are_told_of_in_order(write_files: WriteFiles) -> None:
    """They are read at the same time."""
    header = "head\trelation\ttail\n"
    files = {"a.tsv": header + lines(SOURCE), "b.tsv": header + lines(TARGET), "l": lines(LINKS)}
    folder = write_files(files)
    found = clusterea.load(folder / "a.tsv", folder / "b.tsv", links=folder / "l").notes
    told = [note.split(":")[0] for note in found[:2]]
    assert told == [str(folder / "a.tsv"), str(folder / "b.tsv")]


def test_of_two_bad_tables_the_first_is_told(write_files: WriteFiles) -> None:
    long = lines(SOURCE) * 20_000  # its error is found later
    folder = write_files(
        {"rel_triples_1": f"{long}a\tb\n", "rel_triples_2": "a\n", "ent_links": lines(LINKS)}
    )
    with pytest.raises(DataError, match="rel_triples_1 line 80001: expected 3"):
        clusterea.load(folder)


@pytest.fixture
def openea(write_files: WriteFiles) -> Path:
    return write_files(
        {
            "rel_triples_1": lines(SOURCE),
            "rel_triples_2": lines(TARGET),
            "ent_links": lines(LINKS),
            "721_5fold/1/train_links": lines(LINKS[:1]),
            "721_5fold/1/valid_links": lines(LINKS[1:2]),
            "721_5fold/1/test_links": lines(LINKS[2:]),
            "721_5fold/2/train_links": lines(LINKS[1:2]),
            "721_5fold/2/valid_links": lines(LINKS[:1]),
            "721_5fold/2/test_links": lines(LINKS[2:]),
        }
    )


class TestFolders:
    def test_openea(self, openea: Path) -> None:
        benchmark = clusterea.load(openea)
        assert benchmark.format == "openea"
        assert named_triples(benchmark) == [set(SOURCE), set(TARGET)]
        assert named(benchmark.task.seeds, benchmark) == LINKS
        assert len(benchmark.test_links) == 0
        assert benchmark.dropped == {}

    def test_openea_folds(self, openea: Path) -> None:
        first, second = clusterea.load(openea, fold=1), clusterea.load(openea, split="fold", fold=2)
        assert named(first.task.seeds, first) == LINKS[:1]
        assert named(second.task.seeds, second) == LINKS[1:2]
        assert named(first.test_links, first) == named(second.test_links, second) == LINKS[2:]

    def test_openea_dangling(self, openea: Path) -> None:
        (openea / "dangling_1").write_text("")
        (openea / "dangling_2").write_text("w\n")
        benchmark = clusterea.load(openea)
        assert benchmark.dangling is not None
        assert benchmark.dangling.source.tolist() == []
        assert benchmark.names.target.take(benchmark.dangling.target) == ["w"]

    def ids_folder(self, write_files: WriteFiles, **more: str) -> Path:
        return write_files(
            {
                "triples_1": "0\t0\t1\n1\t0\t2\n2\t1\t0\n6\t1\t0\n",
                "triples_2": "3\t2\t4\n4\t2\t5\n5\t2\t3\n7\t3\t3",
                "ent_ids_1": "0\ta\n1\tb\n2\tc\n6\td",
                "ent_ids_2": "3\tx\n4\ty\n5\tz\n7\tw",
                "rel_ids_1": "0\tr\n1\tq",
                "rel_ids_2": "2\ts\n3\tt",
                "sup_ent_ids": "6\t7",
                "ref_ent_ids": "0\t3\n1\t4\n2\t5",
                **more,
            }
        )

    def test_ids(self, write_files: WriteFiles) -> None:
        benchmark = clusterea.load(self.ids_folder(write_files))
        assert benchmark.format == "ids"
        assert named_triples(benchmark) == [set(SOURCE), set(TARGET)]
        assert named(benchmark.task.seeds, benchmark) == LINKS[3:]
        assert named(benchmark.test_links, benchmark) == LINKS[:3]

    def test_ids_split_anew_takes_seeds_first(self, write_files: WriteFiles) -> None:
        benchmark = clusterea.load(self.ids_folder(write_files), seeds_share=0.5)
        assert named(benchmark.task.seeds, benchmark) == [LINKS[3], LINKS[0]]

    def test_ids_without_relation_names_or_seeds(self, write_files: WriteFiles) -> None:
        folder = self.ids_folder(write_files)
        for name in ("rel_ids_1", "rel_ids_2", "sup_ent_ids"):
            (folder / name).unlink()
        benchmark = clusterea.load(folder)
        assert sorted(benchmark.relation_names.source) == ["0", "1"]
        assert named(benchmark.task.seeds, benchmark) == LINKS[:3]

    def test_ids_that_share_a_name_are_told_apart(self, write_files: WriteFiles) -> None:
        folder = self.ids_folder(write_files, ent_ids_1="0\ta\n1\tb\n2\tb\n6\td")
        assert sorted(clusterea.load(folder).names.source) == ["a", "b #1", "b #2", "d"]

    def test_ids_without_a_name(self, write_files: WriteFiles) -> None:
        folder = self.ids_folder(write_files, ent_ids_1="0\ta\n1\tb\n2\tc\n")
        with pytest.raises(InputError, match="ent_ids_1: expected a name for id 6 of .*triples_1"):
            clusterea.load(folder)

    def test_dbp1m(self, write_files: WriteFiles) -> None:
        files = {
            "fr_triples_1": lines(SOURCE),
            "fr_triples_2": lines(TARGET),
            "fr_ent_links": lines(LINKS),
        }
        folder = write_files(files)
        benchmark = clusterea.load(folder)
        assert benchmark.format == "dbp1m"
        assert named_triples(benchmark) == [set(SOURCE), set(TARGET)]
        write_files({name.replace("fr", "de"): content for name, content in files.items()})
        with pytest.raises(InputError, match="holds 2 pairs, de, fr; give .*de or .*fr"):
            clusterea.load(folder)
        assert named(clusterea.load(folder / "de").task.seeds, benchmark) == LINKS

    @pytest.mark.parametrize(
        "first", ["@prefix", "Base jumping", "PAR1", "<a>", "source", "BZhang"]
    )
    def test_a_folders_files_are_tsv_whatever_they_begin_with(
        self, write_files: WriteFiles, first: str
    ) -> None:
        folder = write_files(
            {
                "rel_triples_1": lines([(first, "relation", "tail"), *SOURCE]),
                "rel_triples_2": lines([("target", "relation", "x."), *TARGET]),
                "ent_links": lines([(first, "target"), *LINKS]),
            }
        )
        benchmark = clusterea.load(folder)
        assert named(benchmark.task.seeds, benchmark) == [(first, "target"), *LINKS]
        assert benchmark.task.graphs.source.num_triples == 5

    def test_format_overrides_what_is_detected(self, write_files: WriteFiles) -> None:
        folder = self.ids_folder(
            write_files, rel_triples_1="k\tr\tl\n", rel_triples_2="m\tr\tn\n", ent_links="k\tm\n"
        )
        assert clusterea.load(folder).format == "openea"
        assert clusterea.load(folder, format="ids").format == "ids"


NT = "<http://ex/{}> <http://ex/{}> <http://ex/{}> .\n"
RDF_XML = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://ex/">
{}</rdf:RDF>
"""
RDF_XML_TRIPLE = (
    '<rdf:Description rdf:about="http://ex/{}"><e:{} rdf:resource="http://ex/{}"/>'
    "</rdf:Description>\n"
)


def ntriples(rows: Sequence[tuple[str, ...]]) -> str:
    return "".join(NT.format(*row) for row in rows)


def turtle(rows: Sequence[tuple[str, ...]]) -> str:
    body = "".join("e:{} e:{} e:{} .\n".format(*row) for row in rows)
    return "@prefix e: <http://ex/> .\n" + body


def rdfxml(rows: Sequence[tuple[str, ...]]) -> str:
    return RDF_XML.format("".join(RDF_XML_TRIPLE.format(*row) for row in rows))


def same_as(rows: Sequence[tuple[str, ...]]) -> str:
    line = "<http://ex/{}> <http://www.w3.org/2002/07/owl#sameAs> <http://ex/{}> .\n"
    return "".join(line.format(*row) for row in rows)


def full(rows: Sequence[tuple[str, ...]]) -> set[tuple[str, ...]]:
    return {tuple(f"http://ex/{part}" for part in row) for row in rows}


class TestRdf:
    @pytest.mark.parametrize(
        ("suffix", "write"), [("nt", ntriples), ("ttl", turtle), ("rdf", rdfxml)]
    )
    @pytest.mark.parametrize("zipped", [False, True])
    def test_each_syntax(
        self,
        write_files: WriteFiles,
        suffix: str,
        write: object,
        zipped: bool,
    ) -> None:
        assert callable(write)

        def content(text: str) -> bytes:
            return gzip.compress(text.encode()) if zipped else text.encode()

        ending = f"{suffix}.gz" if zipped else suffix
        folder = write_files(
            {
                f"one.{ending}": content(write(SOURCE)),
                f"two.{ending}": content(write(TARGET)),
                "links.nt": same_as(LINKS),
            }
        )
        benchmark = clusterea.load(
            folder / f"one.{ending}", folder / f"two.{ending}", links=folder / "links.nt"
        )
        assert named_triples(benchmark) == [full(SOURCE), full(TARGET)]
        assert set(all_links(benchmark)) == full(LINKS)

    @pytest.mark.parametrize("before", ["\ufeff", "# a comment\n", "\n\n"])
    @pytest.mark.parametrize("suffix", [".nt", ".ttl", ""])
    def test_what_may_come_before_the_first_triple(
        self, write_files: WriteFiles, before: str, suffix: str
    ) -> None:
        folder = write_files(
            {
                f"one{suffix}": before + ntriples(SOURCE).replace(" .\n", " . # so\n", 1),
                f"two{suffix}": before + ntriples(TARGET),
                f"links{suffix}": before + same_as(LINKS),
            }
        )
        benchmark = clusterea.load(
            folder / f"one{suffix}", folder / f"two{suffix}", links=folder / f"links{suffix}"
        )
        assert named_triples(benchmark) == [full(SOURCE), full(TARGET)]
        assert set(all_links(benchmark)) == full(LINKS)

    def test_literals_are_skipped_and_counted(self, write_files: WriteFiles) -> None:
        folder = write_files(
            {
                "one.nt": ntriples(SOURCE) + '<http://ex/a> <http://ex/name> "Ann\\tB"@en .\n',
                "two.nt": ntriples(TARGET),
                "links.nt": same_as(LINKS),
            }
        )
        benchmark = clusterea.load(folder / "one.nt", folder / "two.nt", links=folder / "links.nt")
        assert benchmark.dropped == {"source triples with a literal": 1}
        assert named_triples(benchmark)[0] == full(SOURCE)

    def test_same_as_may_be_written_either_way(self, write_files: WriteFiles) -> None:
        turned = [(target, source) for source, target in LINKS[:2]]
        folder = write_files(
            {
                "one.nt": ntriples(SOURCE),
                "two.nt": ntriples(TARGET),
                "links.ttl": same_as(turned) + same_as(LINKS[2:]) + ntriples(SOURCE[:1]),
            }
        )
        benchmark = clusterea.load(folder / "one.nt", folder / "two.nt", links=folder / "links.ttl")
        assert set(all_links(benchmark)) == full(LINKS)
        assert benchmark.dropped == {"statements that are no link": 1}

    def test_blank_nodes_are_entities_with_lasting_names(self, write_files: WriteFiles) -> None:
        blank = "@prefix e: <http://ex/> .\ne:a e:r [ e:q e:b ; e:q [ e:q e:c ] ] .\n"
        folder = write_files(
            {"one.ttl": blank, "two.nt": ntriples(TARGET), "links.nt": same_as(LINKS[:2])}
        )
        files = folder / "one.ttl", folder / "two.nt"
        one, two = (clusterea.load(*files, links=folder / "links.nt") for _ in range(2))
        assert sorted(one.names.source)[:2] == ["_:b0", "_:b1"]
        assert named_triples(one) == named_triples(two)

    def test_a_syntax_error_names_its_line(self, write_files: WriteFiles) -> None:
        folder = write_files(
            {
                "one.nt": ntriples(SOURCE) + "<http://ex/a> nonsense\n",
                "two.nt": ntriples(TARGET),
                "links.nt": same_as(LINKS),
            }
        )
        wanted = "one.nt line 5: expected ntriples, but: The predicate of a triple must be an IRI"
        with pytest.raises(InputError, match=wanted):
            clusterea.load(folder / "one.nt", folder / "two.nt", links=folder / "links.nt")


class TestTables:
    def test_csv_with_other_column_names_and_quotes(self, write_files: WriteFiles) -> None:
        rows = 'x,"to, what",from,how\n' + "".join(f'0,{t},"{h}",{r}\n' for h, r, t in SOURCE)
        other = 'x,"to, what",from,how\n' + "".join(f'0,{t},"{h}",{r}\n' for h, r, t in TARGET)
        folder = write_files({"one.csv": rows, "two.csv": other, "links.tsv": lines(LINKS)})
        benchmark = clusterea.load(
            folder / "one.csv",
            folder / "two.csv",
            links=folder / "links.tsv",
            columns=["from", "how", "to, what"],
        )
        assert benchmark.format == "csv"
        assert named_triples(benchmark) == [set(SOURCE), set(TARGET)]

    def test_known_headers_need_no_columns(self, write_files: WriteFiles) -> None:
        folder = write_files(
            {
                "one.tsv": "subject\tpredicate\tobject\n" + lines(SOURCE),
                "two.csv": "tail,head,relation\n" + lines([(t, h, r) for h, r, t in TARGET], ","),
                "links.csv": "source,target\n" + lines(LINKS, ","),
            }
        )
        benchmark = clusterea.load(
            folder / "one.tsv", folder / "two.csv", links=folder / "links.csv"
        )
        assert named_triples(benchmark) == [set(SOURCE), set(TARGET)]
        assert all_links(benchmark) == LINKS

    def test_bare_triples_without_suffix(self, write_files: WriteFiles) -> None:
        folder = write_files({"one": lines(SOURCE), "two": lines(TARGET), "links": lines(LINKS)})
        benchmark = clusterea.load(folder / "one", folder / "two", links=folder / "links")
        assert named_triples(benchmark) == [set(SOURCE), set(TARGET)]

    def test_parquet_of_strings_and_of_integers(self, tmp_path: Path) -> None:
        heads, relations, tails = zip(*SOURCE, strict=True)
        pq.write_table(
            pa.table({"tail": tails, "head": pa.array(heads).dictionary_encode(), "p": relations}),
            tmp_path / "one.parquet",
        )
        pq.write_table(pa.table({"head": [1, 2], "p": [0, 0], "tail": [2, 3]}), tmp_path / "two.pq")
        pq.write_table(pa.table({"source": ["a"], "target": [2]}), tmp_path / "links.parquet")
        benchmark = clusterea.load(
            tmp_path / "one.parquet",
            tmp_path / "two.pq",
            links=tmp_path / "links.parquet",
            columns=["head", "p", "tail"],
        )
        assert named_triples(benchmark) == [set(SOURCE), {("1", "0", "2"), ("2", "0", "3")}]
        assert all_links(benchmark) == [("a", "2")]

    def test_quotes_mean_nothing_in_tsv(self, write_files: WriteFiles) -> None:
        triples = [('"a', "r", "it's"), ("b", "r", 'c"')]
        folder = write_files(
            {"one.tsv": lines(triples), "two.tsv": lines(TARGET), "links": '"a\tx\n'}
        )
        benchmark = clusterea.load(folder / "one.tsv", folder / "two.tsv", links=folder / "links")
        assert named_triples(benchmark)[0] == set(triples)

    def test_words_that_look_like_missing_values_are_names(self, write_files: WriteFiles) -> None:
        triples = [("NA", "null", "nan")]
        folder = write_files(
            {"one.csv": lines(triples, ","), "two.tsv": lines(TARGET), "links": "NA\tx\n"}
        )
        benchmark = clusterea.load(folder / "one.csv", folder / "two.tsv", links=folder / "links")
        assert named_triples(benchmark)[0] == set(triples)


SSSOM = """#curie_map:
#  e: http://ex/
#mapping_set_id: http://ex/set
subject_id\tpredicate_id\tobject_id\tmapping_justification\tpredicate_modifier
e:a\tskos:exactMatch\te:x\tsemapv:ManualMappingCuration\t
e:b\towl:sameAs\thttp://ex/y\tsemapv:ManualMappingCuration\t
e:c\tskos:broadMatch\te:z\tsemapv:ManualMappingCuration\t
e:c\tskos:exactMatch\te:w\tsemapv:ManualMappingCuration\tNot
e:d\tskos:exactMatch\tsssom:NoTermFound\tsemapv:ManualMappingCuration\t
"""


class TestLinks:
    def load(self, write_files: WriteFiles, links: str, name: str = "links.tsv") -> Benchmark:
        folder = write_files({"one": lines(SOURCE), "two": lines(TARGET), name: links})
        return clusterea.load(folder / "one", folder / "two", links=folder / name)

    @pytest.mark.parametrize("name", ["map.sssom.tsv", "map.tsv"])
    def test_sssom_expands_curies(self, write_files: WriteFiles, name: str) -> None:
        folder = write_files({"one.nt": ntriples(SOURCE), "two.nt": ntriples(TARGET), name: SSSOM})
        benchmark = clusterea.load(folder / "one.nt", folder / "two.nt", links=folder / name)
        assert set(all_links(benchmark)) == full(LINKS[:2])
        assert benchmark.dropped == {"statements that are no link": 3}

    def test_sssom_of_graphs_written_in_curies(self, write_files: WriteFiles) -> None:
        folder = write_files(
            {
                "one": lines([("e:a", "r", "e:b")]),
                "two.nt": ntriples(TARGET),
                "map.sssom.tsv": SSSOM,
            }
        )
        benchmark = clusterea.load(
            folder / "one", folder / "two.nt", links=folder / "map.sssom.tsv"
        )
        assert all_links(benchmark) == [("e:a", "http://ex/x"), ("e:b", "http://ex/y")]

    def test_sssom_prefixes_of_its_own(self, write_files: WriteFiles) -> None:
        text = (
            "#curie_map:\n#  NO: http://ex/\n#  sk: http://www.w3.org/2004/02/skos/core#\n"
            "subject_id\tpredicate_id\tobject_id\nNO:a\tsk:exactMatch\tNO:x\n"
        )
        folder = write_files(
            {"one.nt": ntriples(SOURCE), "two.nt": ntriples(TARGET), "map.sssom.tsv": text}
        )
        benchmark = clusterea.load(
            folder / "one.nt", folder / "two.nt", links=folder / "map.sssom.tsv"
        )
        assert all_links(benchmark) == [("http://ex/a", "http://ex/x")]

    def test_unknown_entities_are_dropped_and_counted(self, write_files: WriteFiles) -> None:
        benchmark = self.load(write_files, "a\tx\nnobody\ty\nb\tnobody\n")
        assert all_links(benchmark) == [("a", "x")]
        assert benchmark.dropped == {"links with an entity in no triple": 2}

    def test_links_become_one_to_one_in_file_order(self, write_files: WriteFiles) -> None:
        # b-x falls to a-x, so y is still free for b; c-y then finds y taken.
        benchmark = self.load(write_files, "a\tx\nb\tx\nb\ty\nc\ty\nd\tw\na\tx\n")
        assert all_links(benchmark) == [("a", "x"), ("b", "y"), ("d", "w")]
        assert benchmark.dropped == {"links of an entity already linked": 3}

    @pytest.mark.parametrize("measure", ["confidence", "score"])
    def test_an_alignment_written_by_us_reads_as_links(
        self, measure: str, write_files: WriteFiles
    ) -> None:
        text = f"source\ttarget\t{measure}\na\tx\t0.9\nb\ty\t0.8\n"
        assert all_links(self.load(write_files, text)) == LINKS[:2]


class TestSplits:
    @pytest.fixture
    def folder(self, write_files: WriteFiles) -> Path:
        size = 100
        return write_files(
            {
                "rel_triples_1": lines([(f"a{i}", "r", f"a{(i + 1) % size}") for i in range(size)]),
                "rel_triples_2": lines([(f"b{i}", "r", f"b{(i + 1) % size}") for i in range(size)]),
                "ent_links": lines([(f"a{i}", f"b{i}") for i in range(size)]),
            }
        )

    @pytest.mark.parametrize("share", [0.01, 0.29, 0.3, 0.57, 1.0])
    def test_a_share_alone_takes_the_first(self, folder: Path, share: float) -> None:
        benchmark = clusterea.load(folder, seeds_share=share)
        seeds = named(benchmark.task.seeds, benchmark)
        assert seeds == [(f"a{i}", f"b{i}") for i in range(round(share * 100))]
        assert len(benchmark.test_links) == 100 - len(seeds)

    def test_random_is_its_seed_and_loses_nothing(self, folder: Path) -> None:
        one, same, other = (
            clusterea.load(folder, split="random", split_seed=seed, seeds_share=0.3)
            for seed in (1, 1, 2)
        )
        assert np.array_equal(one.task.seeds, same.task.seeds)
        assert np.array_equal(one.test_links, same.test_links)
        assert not np.array_equal(one.task.seeds, other.task.seeds)
        assert sorted(all_links(one)) == sorted(all_links(other))
        assert len(one.task.seeds) == 30
        # Not the first ones, nor in the file's order.
        assert named(one.task.seeds, one) != [(f"a{i}", f"b{i}") for i in range(30)]

    def test_a_split_without_a_share_takes_the_papers(self, folder: Path) -> None:
        assert len(clusterea.load(folder, split="random").task.seeds) == 30

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"split": "given", "seeds_share": 0.3}, "^seeds_share goes with split='first' or"),
            ({"split_seed": 1}, "^split_seed goes with split='random', not with given"),
            ({"split": "first", "fold": 1}, "^fold goes with split='fold', not with first"),
            ({"split": "fold"}, "^fold=1: this data has no folds"),
            ({"seeds_share": 0.0}, r"^seeds_share must be a number in \(0, 1\]. Got 0.0"),
            ({"seeds_share": 30.0}, r"must be a number in \(0, 1\]. Got 30.0"),
            ({"seeds_share": float("nan")}, r"must be a number in \(0, 1\]. Got nan"),
            ({"seeds_share": 0.001}, "^seeds_share=0.001 of 100 links leaves no seeds"),
            ({"split": "frist"}, "unknown split 'frist'.*Did you mean 'first'"),
            ({"split": "random", "split_seed": -1}, r"^split_seed must be an int in \[0, inf\)"),
        ],
    )
    def test_options_that_make_no_sense(
        self, folder: Path, options: dict[str, object], message: str
    ) -> None:
        with pytest.raises(InputError, match=message):
            clusterea.load(folder, **options)  # type: ignore[arg-type]

    def test_a_fold_that_is_not_there(self, openea: Path) -> None:
        with pytest.raises(InputError, match="^fold=7: no such fold; there are 1, 2"):
            clusterea.load(openea, fold=7)


class TestSeedsOfTheirOwn:
    def load(self, write_files: WriteFiles, seeds: str, test: str | None = None) -> Benchmark:
        files = {"one": lines(SOURCE), "two": lines(TARGET), "seeds": seeds}
        folder = write_files(files if test is None else {**files, "test": test})
        return clusterea.load(
            folder / "one",
            folder / "two",
            seeds=folder / "seeds",
            test_links=None if test is None else folder / "test",
        )

    def test_seeds_and_test_links(self, write_files: WriteFiles) -> None:
        benchmark = self.load(write_files, "a\tx\n", "b\ty\nc\tz\n")
        assert named(benchmark.task.seeds, benchmark) == LINKS[:1]
        assert named(benchmark.test_links, benchmark) == LINKS[1:3]

    def test_seeds_alone(self, write_files: WriteFiles) -> None:
        assert len(self.load(write_files, "a\tx\nb\ty\n").test_links) == 0

    def test_a_repeated_seed_is_no_contradiction(self, write_files: WriteFiles) -> None:
        benchmark = self.load(write_files, "a\tx\nb\ty\na\tx\n")
        assert named(benchmark.task.seeds, benchmark) == LINKS[:2]
        assert benchmark.dropped == {"links of an entity already linked": 1}

    @pytest.mark.parametrize(
        ("seeds", "line", "entity"), [("a\tx\n\na\ty\n", 3, "a"), ("a\tx\nb\tx\n", 2, "x")]
    )
    def test_a_contradiction_is_an_error(
        self, write_files: WriteFiles, seeds: str, line: int, entity: str
    ) -> None:
        wanted = f"seeds line {line}: expected one counterpart.*got a second one for '{entity}'"
        with pytest.raises(InputError, match=wanted):
            self.load(write_files, seeds)

    @pytest.mark.parametrize("test", ["a\tx\n", "b\tz\na\ty\n", "b\tz\nc\tx\n"])
    def test_test_links_must_not_overlap_the_seeds(
        self, write_files: WriteFiles, test: str
    ) -> None:
        with pytest.raises(
            InputError, match="test line .: expected test links of entities that no"
        ):
            self.load(write_files, "a\tx\n", test)


class TestDuplicates:
    def test_a_repeated_triple_counts_once(self, write_files: WriteFiles) -> None:
        folder = write_files(
            {
                "rel_triples_1": lines([*SOURCE, SOURCE[1], SOURCE[0]]),
                "rel_triples_2": lines(TARGET),
                "ent_links": lines(LINKS),
            }
        )
        benchmark = clusterea.load(folder)
        assert benchmark.dropped == {"source repeated triples": 2}
        assert benchmark.task.graphs.source.num_triples == len(SOURCE)
        assert named_triples(benchmark)[0] == set(SOURCE)


@pytest.mark.parametrize("blank_side", [0, 1])
def test_blank_nodes_in_every_triple_and_dropped(blank_side: int, write_files: WriteFiles) -> None:
    texts = ["<a:a> <a:r> <a:b> .\n", "<a:a> <a:r> <a:b> .\n"]
    texts[blank_side] = "_:x <a:r> <a:b> .\n<a:a> <a:r> _:y .\n"
    folder = write_files({"0.nt": texts[0], "1.nt": texts[1]})
    with pytest.raises(
        InputError,
        match=f"{blank_side}.nt: expected triples between entities, got none "
        r"\(2 triples with a blank node left out\)",
    ):
        clusterea.load(folder / "0.nt", folder / "1.nt", blank_nodes="drop")


@pytest.mark.parametrize("wrong", [5, [5], {"links": 1}, [["links"]], b"links"])
def test_seeds_from_what_is_no_name(wrong: Any) -> None:
    with pytest.raises(InputError, match="^seeds_from must be one or more of .* Got .*instead"):
        clusterea.load(SOURCE, TARGET, links=LINKS, seeds_from=wrong)


@pytest.mark.parametrize("wrong", ["much", "", 0, -1, [1]])
def test_a_largest_size_that_is_none(wrong: Any) -> None:
    with pytest.raises(InputError, match="^max_input_size must be"):
        clusterea.load(SOURCE, TARGET, links=LINKS, max_input_size=wrong)


def test_the_largest_size_as_text(openea: Path) -> None:
    loaded = clusterea.load(openea, max_input_size="1 kB")
    assert named_triples(loaded) == [set(SOURCE), set(TARGET)]
    with pytest.raises(InputError, match="rel_triples_1: expected at most 9 bytes"):
        clusterea.load(openea, max_input_size="9B")
