"""Runs of the command line on pairs with names: seeds from names, and labels that are hostile."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from clusterea.report.readable import one_line
from conftest import Ran, WriteFiles
from small_graphs import random_pair

Command = Callable[..., Ran]
SIZE = 60
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
WORDS = [f"{one}{two}an {three}or" for one in "bdfk" for two in "aeiou" for three in "lmn"]
TRIPLES = random_pair(0, entities=SIZE, triples=4 * SIZE).source.triples.tolist()
# Line ends, NUL, an escape sequence, markup, text from right to left, and a very long label.
HOSTILE = [
    "two\nlines\r\n",
    "nul\0nul",
    "\x1b[31mred",
    "</script><b>",
    "\u202eab",
    "long " * 20_000,
]


def ntriples(side: str, labels: dict[int, str]) -> str:
    def iri(entity: int) -> str:
        return f"<http://{side}.example/Q{entity}>"

    lines = [f"{iri(h)} <http://r.example/{r}> {iri(t)} .\n" for h, r, t in TRIPLES]
    for entity, label in labels.items():
        escaped = "".join(f"\\U{ord(letter):08X}" for letter in label)
        lines.append(f'{iri(entity)} {LABEL} "{escaped}" .\n')
    return "".join(lines)


@pytest.fixture
def files(write_files: WriteFiles) -> Path:
    """Every other entity of the target has a label; the first ones have hostile labels."""
    labels = dict(enumerate([*HOSTILE, *WORDS[len(HOSTILE) :]]))
    some = {entity: text for entity, text in labels.items() if entity < 6 or entity % 2}
    return write_files(
        {
            "a.nt": ntriples("one", labels),
            "b.nt": ntriples("two", some),
            "links.tsv": "".join(
                f"http://one.example/Q{each}\thttp://two.example/Q{each}\n"
                for each in range(0, SIZE, 3)
            ),
        }
    )


def test_a_pair_is_aligned_by_names_alone(
    files: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    run = tmp_path / "run"
    asked = ["--links", files / "links.tsv", "--seeds-from", "names", "--preset", "fast"]
    ran = clusterea_command("align", files / "a.nt", files / "b.nt", *asked, "--out", run)
    assert ran.code == 0, ran.err
    assert "33 seeds (33 from equal names), 20 test links." in ran.err
    rows = list(csv.reader((run / "alignment.tsv").read_text().splitlines(), delimiter="\t"))
    right = sum(row[0].replace("one", "two") == row[1] for row in rows[1:])
    assert right > 0.9 * SIZE  # also entities without a label, by their neighbors
    assert all(len(row) == 3 for row in rows)
    assert len((run / "report.html").read_bytes()) < 2_000_000

    for entity, label in enumerate(HOSTILE):
        told = clusterea_command("explain", run, f"http://one.example/Q{entity}").out
        assert told.startswith(f"{one_line(label)} (http://one.example/Q{entity})  =  ")
        assert "\x1b" not in told
        assert "\0" not in told
        assert len(told) < 10_000
    sssom = run / "links.sssom.tsv"
    assert clusterea_command("export", run, "--format", "sssom", "--out", sssom).code == 0
    table = [line for line in sssom.read_text().split("\n") if line and line[0] != "#"]
    assert len(table) == len(rows)
    assert len({line.count("\t") for line in table}) == 1


def test_two_graphs_of_three_entities(
    write_files: WriteFiles, tmp_path: Path, clusterea_command: Command
) -> None:
    folder = write_files(
        {
            "a.tsv": "Anna\tr\tBert\nBert\tr\tCarla\n",
            "b.tsv": "anna\ts\tBERT\nBERT\ts\tDora\n",
        }
    )
    run = tmp_path / "run"
    ran = clusterea_command(
        "align", folder / "a.tsv", folder / "b.tsv", "--preset", "fast", "--out", run
    )
    assert ran.code == 0, ran.err
    assert "2 seeds (2 from equal names), 0 test links." in ran.err
    found = {
        tuple(line.split("\t")[:2]) for line in (run / "alignment.tsv").read_text().splitlines()
    }
    assert {("Anna", "anna"), ("Bert", "BERT")} <= found  # pairs of names are matched like others


def test_not_every_equal_name_becomes_a_link(
    write_files: WriteFiles, tmp_path: Path, clusterea_command: Command
) -> None:
    """The first six entities have each other's names on one side; their neighbors contradict."""
    labels = dict(enumerate(WORDS))
    wrong = labels | {entity: WORDS[(entity + 1) % 6] for entity in range(6)}
    folder = write_files({"a.nt": ntriples("one", labels), "b.nt": ntriples("two", wrong)})
    run = tmp_path / "run"
    ran = clusterea_command(
        "align", folder / "a.nt", folder / "b.nt", "--preset", "fast", "--out", run
    )
    assert ran.code == 0, ran.err
    assert f"{SIZE} seeds ({SIZE} from equal names)" in ran.err
    rows = [line.split("\t") for line in (run / "alignment.tsv").read_text().splitlines()[1:]]
    right = [row for row in rows if row[0].replace("one", "two") == row[1]]
    assert len(right) >= SIZE - 6
    assert len(rows) - len(right) <= 2
