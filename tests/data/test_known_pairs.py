"""Blank nodes, RDF's own vocabularies, and identical IRIs: who is linked, who is known, who never.

The pair is an ontology in two versions: classes c0 … c29 in a chain, each with a restriction (a
blank node) on its neighbor. Some classes kept their IRIs, the others moved to a new namespace.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import clusterea
from clusterea.errors import InputError
from clusterea.types import Benchmark
from clusterea.workspace import task_key
from conftest import Ran, WriteFiles

Command = Callable[..., Ran]
SIZE = 30
KEPT = (3, 11, 17)  # classes that have one IRI in both versions
PREFIXES = """\
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix kept: <http://kept.example/> .
"""


def ontology(version: int, extra: str = "") -> str:
    """The classes of one version in Turtle."""

    def name(number: int) -> str:
        return f"kept:c{number}" if number in KEPT else f"<http://v{version}.example/c{number}>"

    blocks = [PREFIXES, extra]
    for number in range(SIZE):
        other = (number * 7 + 1) % SIZE
        blocks.append(
            f"{name(number)} a owl:Class ; rdfs:subClassOf {name((number + 1) % SIZE)}, "
            f"[ a owl:Restriction ; owl:onProperty kept:part ; owl:someValuesFrom {name(other)} ] ."
        )
    return "\n".join(blocks)


TERM = "http://www.w3.org/2002/07/owl#Class"
LINKS = [
    (f"http://v1.example/c{number}", f"http://v2.example/c{number}")
    for number in range(SIZE)
    if number not in KEPT
]


@pytest.fixture
def files(write_files: WriteFiles) -> Path:
    links = "".join(f"{source}\t{target}\n" for source, target in LINKS)
    # owl:DeprecatedClass is in one version only.
    extra = "<http://v2.example/old> a owl:DeprecatedClass ."
    return write_files({"a.ttl": ontology(1), "b.ttl": ontology(2, extra), "known.tsv": links})


def loaded(files: Path, **options: Any) -> Benchmark:
    given: dict[str, Any] = {"links": files / "known.tsv", "seeds_share": 0.5} | options
    return clusterea.load(files / "a.ttl", files / "b.ttl", **given)


def names_of(benchmark: Benchmark, ids: Any) -> list[tuple[str, str]]:
    source, target = benchmark.names
    return [(source[left], target[right]) for left, right in ids.tolist()]


def structural(benchmark: Benchmark) -> tuple[list[str], list[str]]:
    (source, names), (target, others) = benchmark.task.structural.zip(benchmark.names)
    return names.take(source), others.take(target)


class TestBlankNodes:
    def test_carry_structure_and_are_never_linked(self, files: Path) -> None:
        benchmark = loaded(files)
        for side, names in zip(structural(benchmark), benchmark.names, strict=True):
            blank = [name for name in names if name.startswith("_:")]
            assert len(blank) == SIZE
            assert set(blank) <= set(side)
        assert benchmark.task.graphs.source.num_triples == 6 * SIZE  # all of them

    def test_dropped_with_their_triples(self, files: Path) -> None:
        benchmark = loaded(files, blank_nodes="drop")
        assert not [name for side in benchmark.names for name in side if name.startswith("_:")]
        assert benchmark.task.graphs.source.num_triples == 2 * SIZE
        assert benchmark.dropped["source triples with a blank node"] == 4 * SIZE
        # owl:Restriction and kept:part were in triples with blank nodes only.
        assert "http://kept.example/part" not in list(benchmark.names.source)
        assert set(benchmark.relation_names.source) == {
            "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
            "http://www.w3.org/2000/01/rdf-schema#subClassOf",
        }

    def test_linked_where_asked_for(self, files: Path) -> None:
        benchmark = loaded(files, blank_nodes="link")
        assert not [name for side in structural(benchmark) for name in side if name[:2] == "_:"]

    def test_a_link_of_one_is_left_out_and_counted(self, write_files: WriteFiles) -> None:
        folder = write_files(
            {
                "a.nt": "<u:a> <u:r> _:x .\n<u:b> <u:r> _:x .\n",
                "b.nt": "<v:a> <v:r> _:y .\n<v:b> <v:r> _:y .\n",
                "links": "u:a\tv:a\n_:x\t_:y\n",
            }
        )
        files = folder / "a.nt", folder / "b.nt"
        found = clusterea.load(*files, links=folder / "links")
        assert names_of(found, found.task.seeds) == [("u:a", "v:a")]
        assert found.dropped["links of a blank node"] == 1
        kept = clusterea.load(*files, links=folder / "links", blank_nodes="link")
        assert len(kept.task.seeds) == 2

    def test_an_unknown_way_is_refused(self, files: Path) -> None:
        with pytest.raises(InputError, match="unknown handling of blank nodes 'dorp'.*'drop'"):
            loaded(files, blank_nodes="dorp")


class TestSeedsFrom:
    def test_identical_iris_are_seeds_of_rdf(self, files: Path) -> None:
        benchmark = loaded(files)
        seeds = names_of(benchmark, benchmark.task.seeds)
        assert seeds[:13] == LINKS[:13]
        identical = {left for left, right in seeds[13:] if left == right}
        assert {f"http://kept.example/c{number}" for number in KEPT} < identical
        assert benchmark.seeds_from == {"links": 13, "iris": len(identical)}
        assert names_of(benchmark, benchmark.test_links) == LINKS[13:]

    def test_links_alone_where_asked_for(self, files: Path) -> None:
        benchmark = loaded(files, seeds_from="links")
        assert names_of(benchmark, benchmark.task.seeds) == LINKS[:13]
        assert benchmark.seeds_from == {"links": 13}

    def test_without_links_every_link_is_a_test_link(self, files: Path) -> None:
        benchmark = loaded(files, seeds_from=["iris"], seeds_share=None)
        assert names_of(benchmark, benchmark.test_links) == LINKS
        assert all(left == right for left, right in names_of(benchmark, benchmark.task.seeds))

    def test_no_links_at_all(self, files: Path) -> None:
        benchmark = clusterea.load(files / "a.ttl", files / "b.ttl")
        assert benchmark.seeds_from == {"names": 0, "iris": 6}
        assert not len(benchmark.test_links)

    def test_a_seed_of_the_links_counts_more_than_an_identical_iri(self, files: Path) -> None:
        moved = ("http://kept.example/c3", "http://v2.example/c4")
        (files / "known.tsv").write_text("\t".join(moved) + "\n")
        benchmark = loaded(files, seeds_share=None)
        seeds = dict(names_of(benchmark, benchmark.task.seeds))
        assert seeds["http://kept.example/c3"] == "http://v2.example/c4"
        assert seeds["http://kept.example/c17"] == "http://kept.example/c17"

    def test_a_test_link_that_is_an_identical_pair_is_held_back(self, files: Path) -> None:
        """Otherwise nothing could be judged where both versions share their IRIs."""
        same = ("http://kept.example/c11", "http://kept.example/c11")
        rows = [LINKS[0], LINKS[1], same]
        (files / "known.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
        benchmark = loaded(files, seeds_share=0.34)
        assert names_of(benchmark, benchmark.test_links) == rows[1:]
        assert same not in names_of(benchmark, benchmark.task.seeds)

    def test_test_links_do_not_tell_which_iris_mislead(self, files: Path) -> None:
        """No leak: an identical pair that the truth contradicts is a seed all the same."""
        wrong = [("http://kept.example/c3", "http://v2.example/c4"), ("http://v1.example/c9", TERM)]
        kept = [LINKS[0], LINKS[1], LINKS[2]]
        tasks = []
        for rows in (kept, [*kept, *wrong]):
            (files / "test.tsv").write_text("".join("\t".join(row) + "\n" for row in rows[1:]))
            (files / "known.tsv").write_text("\t".join(rows[0]) + "\n")
            given = {"links": None, "seeds": files / "known.tsv", "test_links": files / "test.tsv"}
            benchmark = loaded(files, seeds_share=None, **given)
            tasks.append(task_key(benchmark.task))
            assert names_of(benchmark, benchmark.test_links) == kept[1:]
        assert tasks[0] == tasks[1]
        assert benchmark.dropped["test links of entities that identical IRIs decide"] == 2

    def test_tables_and_folders_have_links_alone(self, write_files: WriteFiles) -> None:
        rows = "".join(f"http://x.example/{n}\tr\thttp://x.example/{n + 1}\n" for n in range(4))
        folder = write_files(
            {
                "a.tsv": rows,
                "b.tsv": rows,
                "links": "http://x.example/0\thttp://x.example/1\n",
                "pair/rel_triples_1": rows,
                "pair/rel_triples_2": rows,
                "pair/ent_links": "http://x.example/0\thttp://x.example/1\n",
            }
        )
        files = folder / "a.tsv", folder / "b.tsv"
        assert len(clusterea.load(*files, links=folder / "links").task.seeds) == 1
        assert len(clusterea.load(folder / "pair").task.seeds) == 1
        # 0 and 1 are linked to others than themselves; 2, 3 and 4 are left.
        both = clusterea.load(*files, links=folder / "links", seeds_from="links,iris")
        assert both.seeds_from == {"links": 1, "iris": 3}
        of_folder = clusterea.load(folder / "pair", seeds_from="links, iris")
        assert of_folder.seeds_from == {"links": 1, "iris": 3}
        (folder / "pair/rel_triples_2").write_text(rows.replace("x.example", "y.example"))
        (folder / "pair/ent_links").write_text("http://x.example/0\thttp://y.example/1\n")
        with pytest.raises(InputError, match="no known pair to learn from"):
            clusterea.load(folder / "pair", seeds_from="iris")

    def test_names_that_are_no_iris_are_not_the_same(self, write_files: WriteFiles) -> None:
        rows = "1\tr\t2\n2\tr\t3\nParis\tr\t3\n"
        folder = write_files({"a.tsv": rows, "b.tsv": rows})
        with pytest.raises(InputError, match="no known pair to learn from: no IRI is in both"):
            clusterea.load(folder / "a.tsv", folder / "b.tsv", seeds_from="iris")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"seeds_from": []}, "seeds_from must be one or more of links, names, iris. Got none"),
            (
                {"seeds_from": "iri"},
                "unknown source of seeds 'iri'; choose one of links, names, iris.*'iris'",
            ),
            ({"seeds_from": "iris"}, "takes every link for a test link. Leave out seeds, split"),
            ({"links": None}, "^split, seeds_share and fold divide links"),
            ({"links": None, "seeds_share": None, "seeds_from": "links"}, "^two graphs need links"),
        ],
    )
    def test_refused(self, options: dict[str, Any], message: str, files: Path) -> None:
        with pytest.raises(InputError, match=message):
            loaded(files, **options)


class TestVocabularies:
    def test_terms_of_both_sides_are_known_pairs(self, files: Path) -> None:
        benchmark = loaded(files)
        seeds = names_of(benchmark, benchmark.task.seeds)
        term = "http://www.w3.org/2002/07/owl#Class"
        assert (term, term) in seeds

    def test_terms_of_one_side_are_never_linked(self, files: Path) -> None:
        _, target = structural(loaded(files))
        assert "http://www.w3.org/2002/07/owl#DeprecatedClass" in target

    def test_a_test_link_of_one_is_dropped(self, files: Path) -> None:
        rows = [LINKS[0], LINKS[1], ("http://v1.example/c9", TERM)]
        (files / "known.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
        benchmark = loaded(files, seeds_from="links", seeds_share=0.34)
        assert names_of(benchmark, benchmark.test_links) == rows[1:2]
        assert benchmark.dropped["test links of RDF's own terms"] == 1

    def test_without_identical_iris_none_is_linked(self, files: Path) -> None:
        for side in structural(loaded(files, seeds_from="links")):
            assert "http://www.w3.org/2002/07/owl#Class" in side

    def test_they_alone_are_nothing_to_learn_from(self, write_files: WriteFiles) -> None:
        folder = write_files(
            {
                "a.nt": "<u:a> <u:r> <http://www.w3.org/2002/07/owl#Class> .\n",
                "b.nt": "<v:b> <u:r> <http://www.w3.org/2002/07/owl#Class> .\n",
            }
        )
        with pytest.raises(InputError, match="in both graphs but 1 terms of RDF's own") as raised:
            clusterea.load(folder / "a.nt", folder / "b.nt")
        assert str(raised.value).endswith("with links.")


def test_a_run_lists_no_blank_node_anywhere(
    files: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    run = tmp_path / "run"
    pair = [files / "a.ttl", files / "b.ttl", "--links", files / "known.tsv"]
    ran = clusterea_command(
        "align", *pair, "--seeds-share", "0.5", "--preset", "fast", "--out", run
    )
    assert ran.code == 0, ran.err
    assert "seeds (13 from links, 6 from identical IRIs), 14 test links" in ran.err
    written = ["alignment.tsv", "unmatched_source.tsv", "unmatched_target.tsv"]
    for format_name, name in (("ntriples", "x.nt"), ("sssom", "x.sssom.tsv"), ("oaei", "x.rdf")):
        out = run / name
        assert clusterea_command("export", run, "--format", format_name, "--out", out).code == 0
        written.append(name)
    for name in written:
        text = (run / name).read_text()
        assert "_:" not in text, name
        assert "%3A" not in text, name
        assert "owl#Class" not in text, name
    lines = (run / "alignment.tsv").read_text().splitlines()
    rows = list(csv.DictReader(lines, delimiter="\t"))
    right = sum((row["source"], row["target"]) in LINKS for row in rows)
    assert right >= 10  # of 14: the structure of the restrictions is used
    unmatched = (run / "unmatched_target.tsv").read_text().splitlines()[1:]
    assert len(rows) + len(unmatched) == 14 + 1  # v2's <old> is the one beyond the test links


def test_explain_says_that_a_blank_node_is_never_linked(
    files: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    run = tmp_path / "run"
    pair = [files / "a.ttl", files / "b.ttl", "--links", files / "known.tsv"]
    assert clusterea_command("align", *pair, "--preset", "fast", "--out", run).code == 0
    told = clusterea_command("explain", run, "_:b0")
    assert "_:b0 (source) is never linked: it is a blank node or a term" in told.out
    as_json = json.loads(clusterea_command("explain", run, "_:b0", "--json").out)
    assert [each["never_linked"] for each in as_json["unmatched"]] == [True, True]


def test_seeds_that_are_mostly_identical_iris_are_warned_of(
    files: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    """They say little of the entities that have no such IRI."""
    asked = ["align", files / "a.ttl", files / "b.ttl", "--out", tmp_path / "run", "--dry-run"]
    mostly = clusterea_command(*asked)
    assert "6 of 6 seeds are identical IRIs." in mostly.out
    assert "a calibrated confidence may be too high" in mostly.out
    few = clusterea_command(*asked, "--links", files / "known.tsv")
    assert "identical IRIs." not in few.out


def test_info_counts_who_is_never_linked(files: Path, clusterea_command: Command) -> None:
    pair = [files / "a.ttl", files / "b.ttl", "--links", files / "known.tsv"]
    shown = clusterea_command("info", *pair)
    assert "never linked (blank nodes, RDF's own terms)" in shown.out
    assert "all of them seeds (27 from links, 6 from identical IRIs)" in " ".join(shown.out.split())
