"""`clusterea evaluate --alignment ANY --test-links F`: anybody's alignment by our rules."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tiny_runs import SAME_AS, Command

TRUTH = [(f"http://a.org/{n}", f"http://b.org/{n}") for n in range(8)]
# Three right of five, one of them twice; one that is wrong, one of entities that no truth has.
GIVEN = [*TRUTH[:3], TRUTH[0], (TRUTH[3][0], TRUTH[4][1]), ("http://a.org/x", "http://b.org/y")]
EXPECTED = {"precision": 3 / 5, "recall": 3 / 8, "f1": 2 * 3 / 13}


def tsv(links: list[tuple[str, str]]) -> str:
    return "".join(f"{a}\t{b}\n" for a, b in links)


def headed(links: list[tuple[str, str]], measure: str = "confidence") -> str:
    return f"source\ttarget\t{measure}\n" + "".join(f"{a}\t{b}\t0.5\n" for a, b in links)


def ntriples(links: list[tuple[str, str]]) -> str:
    return "".join(f"<{a}> <{SAME_AS}> <{b}> .\n" for a, b in links)


def turned(links: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(b, a) for a, b in links]


def sssom(links: list[tuple[str, str]]) -> str:
    head = "#curie_map:\n#  A: http://a.org/\n#  B: http://b.org/\n"
    columns = "subject_id\tpredicate_id\tobject_id\tmapping_justification\n"
    why = "semapv:ManualMappingCuration"

    def curie(name: str) -> str:
        return name.replace("http://a.org/", "A:").replace("http://b.org/", "B:")

    rows = "".join(f"{curie(a)}\towl:sameAs\t{curie(b)}\t{why}\n" for a, b in links)
    return f"{head}{columns}{rows}A:lonely\towl:sameAs\tsssom:NoTermFound\t{why}\n"


FORMS = {
    "bare.tsv": tsv,
    "headed.tsv": headed,
    "scored.tsv": lambda links: headed(links, "score"),
    "links": tsv,
    "links.csv": lambda links: "source,target\n" + tsv(links).replace("\t", ","),
    "links.nt": ntriples,
    "links.ttl": ntriples,
    "turned.nt": lambda links: ntriples(turned(links)),
    "mixed.nt": lambda links: ntriples([*links[:2], *turned(links[2:])]),
    "links.sssom.tsv": sssom,
}


@pytest.mark.parametrize("truth", ["bare.tsv", "links.nt", "turned.nt", "links.sssom.tsv"])
@pytest.mark.parametrize("given", FORMS)
def test_every_form_comes_to_the_same(
    given: str, truth: str, tmp_path: Path, clusterea_command: Command
) -> None:
    alignment, test_links = tmp_path / given, tmp_path / "truth" / truth
    test_links.parent.mkdir()
    alignment.write_text(FORMS[given](GIVEN))
    test_links.write_text(FORMS[truth](TRUTH))
    ran = clusterea_command(
        "evaluate", "--alignment", alignment, "--test-links", test_links, "--json"
    )
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["matching"] == pytest.approx(EXPECTED)
    assert (found["links"], found["test_links"]) == (len(GIVEN), len(TRUTH))


def test_parquet(tmp_path: Path, clusterea_command: Command) -> None:
    sources, targets = zip(*GIVEN, strict=True)
    pq.write_table(pa.table({"source": sources, "target": targets}), tmp_path / "links.parquet")
    (tmp_path / "truth").write_text(tsv(TRUTH))
    ran = clusterea_command(
        *("evaluate", "--alignment", tmp_path / "links.parquet"),
        *("--test-links", tmp_path / "truth"),
    )
    assert ran.out == "Precision 60.0%, recall 37.5%, F1 46.2% on 8 test links.\n"


def test_sssom_in_ascii_of_names_that_are_not(tmp_path: Path, clusterea_command: Command) -> None:
    truth = [(f"http://a.org/Zürich{n}", f"http://b.org/Łódź{n}") for n in range(3)]
    (tmp_path / "truth").write_text(tsv(truth))
    (tmp_path / "given.sssom.tsv").write_text(
        sssom([(quote(a, safe=":/"), quote(b, safe=":/")) for a, b in truth])
    )
    ran = clusterea_command(
        *("evaluate", "--alignment", tmp_path / "given.sssom.tsv"),
        *("--test-links", tmp_path / "truth"),
    )
    assert ran.out.startswith("Precision 100.0%, recall 100.0%")


def test_the_same_name_on_both_sides(tmp_path: Path, clusterea_command: Command) -> None:
    (tmp_path / "truth").write_text("Paris\tParis\nRome\tRoma\n")
    (tmp_path / "given").write_text("Paris\tParis\nRoma\tRome\n")  # the second is turned: wrong
    ran = clusterea_command(
        "evaluate", "--alignment", tmp_path / "given", "--test-links", tmp_path / "truth"
    )
    assert ran.out == "Precision 50.0%, recall 50.0%, F1 50.0% on 2 test links.\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "expected at least one line, got an empty file."),
        ("source\ttarget\tconfidence\n", "expected lines of source, target, got none."),
        ("a\tb\tc\n", "line 1: expected 2 tab-separated columns, got 3. Is this a triples file?"),
    ],
)
def test_a_file_that_can_not_be_used(
    content: str, message: str, tmp_path: Path, clusterea_command: Command
) -> None:
    (tmp_path / "truth").write_text(tsv(TRUTH))
    (tmp_path / "given.tsv").write_text(content)
    ran = clusterea_command(
        "evaluate", "--alignment", tmp_path / "given.tsv", "--test-links", tmp_path / "truth"
    )
    assert ran.code == 2
    assert ran.err.startswith(f"error: {tmp_path / 'given.tsv'}")
    assert message in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "evaluate takes a RUN, or else --alignment FILE with --test-links FILE."),
        (["run", "--alignment", "a"], "evaluate takes a RUN, or else --alignment FILE"),
        (["run", "--test-links", "a"], "--test-links goes with --alignment; a run has its own."),
        (["--test-links", "a"], "evaluate takes a RUN, or else --alignment FILE"),
        (["--alignment", "a"], "--alignment needs --test-links FILE."),
        (["--alignment", "nowhere", "--test-links", "a"], "nowhere: expected a file"),
    ],
)
def test_options_that_do_not_go_together(
    arguments: list[str], message: str, clusterea_command: Command
) -> None:
    ran = clusterea_command("evaluate", *arguments)
    assert ran.code == 2
    assert ran.err.startswith(f"error: {message}")
