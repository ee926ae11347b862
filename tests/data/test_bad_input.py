"""Bad input: one clear message that names the place, exit code 2, no traceback, nothing written."""

from __future__ import annotations

import gzip
import lzma
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import Ran, WriteFiles

GOOD: dict[str, str | bytes] = {
    "rel_triples_1": "a\tr\tb\nb\tr\tc\n",
    "rel_triples_2": "x\ts\ty\ny\ts\tz\n",
    "ent_links": "a\tx\nb\ty\n",
}
Command = Callable[..., Ran]


def refused(ran: Ran, message: str) -> None:
    assert ran.code == 2, ran
    assert ran.out == ""
    assert "Traceback" not in ran.err
    assert ran.err.startswith("error: ")
    assert len(ran.err.splitlines()) == 1
    assert re.search(message, ran.err), ran.err


FOLDERS: dict[str, tuple[dict[str, str | bytes | None], str]] = {
    "missing triples": ({"rel_triples_2": None}, r"rel_triples_2: expected a file, but there is"),
    "missing links": ({"ent_links": None}, r"ent_links: expected a file, but there is none"),
    "no data at all": (
        dict.fromkeys(GOOD),
        r"expected rel_triples_1 \(OpenEA\), triples_1 .* got none of them",
    ),
    "empty triples": ({"rel_triples_1": ""}, r"rel_triples_1: expected .*got an empty file"),
    "blank triples": ({"rel_triples_1": "\n \n\n"}, r"rel_triples_1: expected .*got an empty"),
    "empty links": ({"ent_links": ""}, r"ent_links: expected .*got an empty file"),
    "two columns": (
        {"rel_triples_1": "a\tr\tb\nb\tr\nc\tr\ta\n"},
        r"rel_triples_1 line 2: expected 3 tab-separated columns, got 2\. Is this a links file\?",
    ),
    "four columns": (
        {"rel_triples_2": "x\ts\ty\n\ny\ts\tz\t1\n"},
        r"rel_triples_2 line 3: expected 3 tab-separated columns, got 4",
    ),
    "triples as links": (
        {"ent_links": "a\tx\n" * 3 + "a\tr\tb\n"},
        r"ent_links line 4: expected 2 tab-separated columns, got 3\. Is this a triples file\?",
    ),
    "commas for tabs": (
        {"rel_triples_1": "a,r,b\n"},
        r"rel_triples_1 line 1: expected 3 tab-separated columns, got 1",
    ),
    "empty cell": (
        {"rel_triples_1": "a\tr\tb\nb\t\tc\n"},
        r"rel_triples_1 line 2: expected a relation, got an empty cell",
    ),
    "latin-1": (
        {"rel_triples_1": b"a\tr\tb\n" + "é\tr\tb\n".encode("latin-1")},
        r"rel_triples_1 line 2: expected UTF-8, got byte 0xe9 in column 1",
    ),
    "utf-16": (
        {"rel_triples_1": "a\tr\tb\n".encode("utf-16")},
        r"rel_triples_1 line 1: expected UTF-8, got UTF-16",
    ),
    "unknown entities only": (
        {"ent_links": "nobody\tx\nb\tnobody\n"},
        r"ent_links: expected links between entities of the two graphs, got none among 2",
    ),
    "links turned round": (
        {"ent_links": "x\ta\ny\tb\n"},
        r"ent_links: .*got none among 2\. Are source and target the wrong way round\?",
    ),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_folders(case: str, write_files: WriteFiles, clusterea_command: Command) -> None:
    changes, message = FOLDERS[case]
    contents = {**GOOD, **changes}
    folder = write_files({name: text for name, text in contents.items() if text is not None})
    before = sorted(folder.rglob("*"))
    refused(clusterea_command("info", folder), message)
    assert sorted(folder.rglob("*")) == before


def test_the_good_folder_is_good(write_files: WriteFiles, clusterea_command: Command) -> None:
    assert clusterea_command("info", write_files(GOOD)).code == 0


FILES: dict[str, tuple[dict[str, str | bytes], list[str], str]] = {
    "missing seeds file": ({}, ["--seeds", "nowhere"], "nowhere: expected a file, but there is"),
    "folder for a file": ({"sub/x": ""}, ["--links", "sub"], "sub: expected a file, got a folder"),
    "no links given": (
        {},
        [],
        "no known pair to learn from: no name belongs to exactly one entity in each graph; "
        "no IRI is in both graphs. Give pairs that are known with --links.$",
    ),
    "seeds from links, of which there are none": (
        {},
        ["--seeds-from", "links"],
        "two graphs need --links, or else --seeds",
    ),
    "no links, no names": (
        {},
        ["--names", "none"],
        "no known pair to learn from: no IRI is in both graphs. Give pairs that are known with "
        "--links, or use equal names with --names auto --seeds-from names.$",
    ),
    "seeds from names that are not compared": (
        {},
        ["--seeds-from", "names", "--names", "none"],
        "--seeds-from names needs names that are compared, but --names is none",
    ),
    "links and seeds": (
        {"seeds": "a\tx\n"},
        ["--links", "links", "--seeds", "seeds"],
        "two graphs need --links, or else --seeds",
    ),
    "test links without seeds": (
        {"test": "a\tx\n"},
        ["--links", "links", "--test-links", "test"],
        "--test-links goes with --seeds",
    ),
    "two columns named": (
        {},
        ["--links", "links", "--columns", "head,tail"],
        "--columns must be three names",
    ),
    "columns that are not there": (
        {},
        ["--links", "links", "--columns", "head,relation,tail"],
        r"one line 1: expected the columns head, relation, tail; got a, r, b",
    ),
    "unknown format": (
        {},
        ["--links", "links", "--format", "turtel"],
        "unknown format 'turtel'; choose one of .* Did you mean 'turtle'",
    ),
    "folder format for files": (
        {},
        ["--links", "links", "--format", "openea"],
        "--format openea is a folder's",
    ),
    "rdf wanted, table given": (
        {},
        ["--links", "links", "--format", "rdf"],
        "one: expected one of ntriples, turtle, rdfxml, .*, got what looks like tsv",
    ),
    "not sssom after all": (
        {"l.sssom.tsv": "#x: 1\nsubject_id\tobject_id\na\tx\n"},
        ["--links", "l.sssom.tsv"],
        "l.sssom.tsv line 2: expected the columns subject_id, predicate_id, object_id",
    ),
    "corrupt gzip": (
        {"l.tsv.gz": gzip.compress(b"a\tx\n" * 1000)[:20] + b"rubbish" * 9},
        ["--links", "l.tsv.gz"],
        "l.tsv.gz: can't be unpacked",
    ),
    "broken gzip": (
        {"l.tsv.gz": gzip.compress(b"a\tx\n" * 1000)[:-20]},
        ["--links", "l.tsv.gz"],
        "l.tsv.gz: can't be",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_files(
    case: str,
    write_files: WriteFiles,
    clusterea_command: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    contents, arguments, message = FILES[case]
    folder = write_files(
        {
            "one": GOOD["rel_triples_1"],
            "two": GOOD["rel_triples_2"],
            "links": GOOD["ent_links"],
            **contents,
        }
    )
    monkeypatch.chdir(folder)
    refused(clusterea_command("info", "one", "two", *arguments), message)


GRAPHS: dict[str, tuple[str, str | bytes, str]] = {
    "only literals": (
        "one.nt",
        '<http://a> <http://r> "b" .\n',
        r"one.nt: expected triples between entities, got none \(1 triples with a literal left",
    ),
    "corrupt xz": ("one.nt.xz", lzma.compress(b"x" * 500)[:40] + b"rubbish", "one.nt.xz: can't be"),
    "not utf-8": (
        "one.nt",
        b"<http://\xff> <http://r> <http://b> .\n",
        "one.nt line 1: expected n",
    ),
    "empty turtle": ("one.ttl", "@prefix e: <http://e/> .\n", "one.ttl: expected RDF triples"),
    "empty n-triples": ("one.nt", "", "one.nt: expected RDF triples, got none"),
    "broken xml": ("one.rdf", "<rdf:RDF/>", "one.rdf.*: expected rdfxml, but: Unknown prefix rdf"),
    "not parquet": ("one.parquet", "a\tr\tb\n", "one.parquet: can't be read as Parquet"),
    "header only": ("one.csv", "head,relation,tail\n", "one.csv: expected .*head, relation, tail"),
    "nothing to tell by": ("one", "hello\n", "one line 1: can't tell its format; give one with"),
    "wrong csv": (
        "one.csv",
        'head,relation,tail\n"a, b",r,c\na,r\n',
        "one.csv line 3: expected 3 comma-separated columns, got 2",
    ),
}


@pytest.mark.parametrize("case", GRAPHS)
def test_graphs(case: str, write_files: WriteFiles, clusterea_command: Command) -> None:
    name, content, message = GRAPHS[case]
    folder = write_files({name: content, "two": "x\ts\ty\n", "links": "a\tx\n"})
    ran = clusterea_command("info", folder / name, folder / "two", "--links", folder / "links")
    refused(ran, message)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            pa.table({"head": ["a"], "how": ["r"], "tail": ["b"]}),
            "one.parquet: expected the columns head, relation, tail; got head, how, tail",
        ),
        (
            pa.table({"head": ["a", None], "relation": ["r", "r"], "tail": ["b", "c"]}),
            "one.parquet: expected a head, got an empty cell in row 2",
        ),
        (
            pa.table({"head": [1.5], "relation": ["r"], "tail": ["b"]}),
            "one.parquet: expected strings or integers in column head, got double",
        ),
        (
            pa.table({"head": [""], "relation": ["r"], "tail": ["b"]}).slice(1),
            "one.parquet: expected triples between entities, got none",
        ),
    ],
)
def test_parquet(
    table: pa.Table, message: str, write_files: WriteFiles, clusterea_command: Command
) -> None:
    folder = write_files({"two": "x\ts\ty\n", "links": "a\tx\n"})
    pq.write_table(table, folder / "one.parquet")
    refused(
        clusterea_command(
            "info", folder / "one.parquet", folder / "two", "--links", folder / "links"
        ),
        message,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["one"], "one is one file. Give a folder, or two files and their links"),
        (["nowhere"], "nowhere: expected a folder of data, but there is none"),
        ([".", "--links", "one"], "--links, --seeds and --test-links go with two files"),
        ([".", "--columns", "a,b,c"], "--columns goes with two tables"),
        ([".", "--format", "csv"], "--format csv goes with two files"),
    ],
)
def test_places(
    arguments: list[str],
    message: str,
    write_files: WriteFiles,
    clusterea_command: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(write_files({"one": "a\tr\tb\n"}))
    refused(clusterea_command("info", *arguments), message)


def test_parquet_without_links(write_files: WriteFiles, clusterea_command: Command) -> None:
    folder = write_files({"one": "a\tr\tb\n", "two": "x\ts\ty\n"})
    table = pa.table({"source": ["a"], "target": ["x"]}).slice(1)
    pq.write_table(table, folder / "links.parquet")
    ran = clusterea_command(
        "info", folder / "one", folder / "two", "--links", folder / "links.parquet"
    )
    refused(ran, "links.parquet: expected links, got none")


def test_a_path_that_looks_like_markup(write_files: WriteFiles, clusterea_command: Command) -> None:
    folder = write_files({f"we[red]y[/x]/{name}": text for name, text in GOOD.items()})
    assert clusterea_command("info", folder / "we[red]y[/x]").code == 0
    refused(clusterea_command("info", folder / "no[/x]"), r"no\[/x\]: expected a folder of data")


def test_names_that_no_id_can_tell_apart(
    write_files: WriteFiles, clusterea_command: Command
) -> None:
    folder = write_files(
        {
            "triples_1": "0\t0\t1\n2\t0\t1\n",
            "triples_2": "3\t0\t4\n",
            "ent_ids_1": "0\tX\n1\tX\n2\tX #0\n",
            "ent_ids_2": "3\tY\n4\tZ\n",
            "ref_ent_ids": "0\t3\n",
        }
    )
    refused(clusterea_command("info", folder), "ent_ids_1: expected names that can be told apart")


def test_an_unreadable_file(write_files: WriteFiles, clusterea_command: Command) -> None:
    folder = write_files(GOOD)
    (folder / "rel_triples_1").unlink()
    (folder / "rel_triples_1").symlink_to(Path("rel_triples_1"))  # a loop
    refused(clusterea_command("info", folder), "rel_triples_1: ")
