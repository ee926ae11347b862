"""`clusterea suggest`: the pairs to ask a person about, in the terminal and as a file."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import patch

import pytest
from tiny_runs import ONLY_SCORED, Command, aligned, rows, write_pair

from clusterea.pipeline import load_run
from clusterea.types import Answer
from clusterea.types.alignment import NOT_CALIBRATED


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suggested")
    aligned(write_pair(folder / "pair"), folder / "run")
    return folder / "run"


def test_a_table(run: Path, clusterea_command: Command) -> None:
    ran = clusterea_command("suggest", run, "--count", "4")
    assert ran.code == 0, ran.err
    titles, *lines, note = ran.out.splitlines()
    assert titles.split() == ["Source", "Target", "Score", "Why", "it", "is", "asked"]
    assert note == NOT_CALIBRATED
    assert len(lines) == 4
    assert lines[3].rstrip().endswith("a link, drawn at random")
    links = {tuple(short(cell) for cell in row[:2]) for row in rows(run / "alignment.tsv")[1:]}
    assert tuple(lines[3].split()[:2]) in links


def test_fifty_unless_told(run: Path, clusterea_command: Command) -> None:
    told = json.loads(clusterea_command("suggest", run, "--json").out)
    assert len(told["questions"]) == 50
    assert told["random"] == sum(each["asked"] == "random" for each in told["questions"]) == 12


def test_everything_as_json(run: Path, clusterea_command: Command) -> None:
    told = json.loads(clusterea_command("suggest", run, "--count", "12", "--json").out)
    assert told["confidence"] == ONLY_SCORED
    links = {(row[0], row[1]): float(row[2]) for row in rows(run / "alignment.tsv")[1:]}
    lone = {row[0] for row in rows(run / "unmatched_source.tsv")[1:]}
    for each in told["questions"]:
        assert each.keys() == {"source", "target", "score", "asked", "linked"}
        if each["linked"]:
            assert each["score"] == pytest.approx(links[each["source"], each["target"]])
        else:
            assert each["source"] in lone
            assert each["asked"] == "chosen"


def test_a_file_to_fill_in(run: Path, tmp_path: Path, clusterea_command: Command) -> None:
    path = tmp_path / "ask.tsv"
    ran = clusterea_command("suggest", run, "--count", "5", "--out", path)
    assert ran.code == 0, ran.err
    assert ran.out == f"5 pairs:\n  {path}\n"
    told = json.loads(clusterea_command("suggest", run, "--count", "5", "--json").out)
    pairs = [[each["source"], each["target"], ""] for each in told["questions"]]
    assert rows(path) == [["source", "target", "answer"], *pairs]


def test_standard_output_gets_only_the_file(
    run: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    clusterea_command("suggest", run, "--count", "5", "--out", tmp_path / "ask.tsv")
    ran = clusterea_command("suggest", run, "--count", "5", "--out", "-")
    assert ran.code == 0
    assert ran.out == (tmp_path / "ask.tsv").read_text()


def test_names_with_tabs_are_written_as_iris(tmp_path: Path) -> None:
    from clusterea.report.suggestions import Suggestions
    from clusterea.types import Names, Pair, Question

    names = Pair(Names(["a\tb"]), Names(["c"]))
    question = Question(0, 0, 0.5, is_link=True, is_random=False)
    Suggestions((question,), names, "score", "").write(tmp_path / "ask.tsv")
    assert rows(tmp_path / "ask.tsv")[1] == ["urn:clusterea:source:a%09b", "c", ""]


def test_what_was_answered_is_not_asked_again(run: Path, clusterea_command: Command) -> None:
    asked = load_run(run, need="match").suggest(5)
    answers = [Answer(each.source, each.target, "different") for each in asked]
    before = json.loads(clusterea_command("suggest", run, "--count", "5", "--json").out)
    with patch("clusterea.review.answers.answers_of", return_value=answers):
        told = json.loads(clusterea_command("suggest", run, "--count", "500", "--json").out)
    sources = {each["source"] for each in told["questions"]}
    assert sources
    assert not sources & {each["source"] for each in before["questions"]}


def test_no_pair_is_left(run: Path, clusterea_command: Command) -> None:
    every = load_run(run, need="match").suggest(10_000)
    answers = [Answer(each.source, None, "none") for each in every]
    while more := load_run(run, need="match").suggest(10_000, answers):
        answers += [Answer(each.source, None, "none") for each in more]
    with patch("clusterea.review.answers.answers_of", return_value=answers):
        ran = clusterea_command("suggest", run)
    assert (ran.code, ran.out) == (0, "No pair is left to ask about.\n")


@pytest.mark.parametrize("count", ["0", "-1", "all"])
def test_a_count_that_is_none(count: str, run: Path, clusterea_command: Command) -> None:
    ran = clusterea_command("suggest", run, "--count", count)
    assert ran.code == 2
    assert "Invalid value for '--count'" in ran.err


def test_no_run_as_json(tmp_path: Path, clusterea_command: Command) -> None:
    ran = clusterea_command("suggest", tmp_path / "nothing", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert json.loads(ran.err)["event"] == "error"


def short(name: str) -> str:
    return name.rpartition("/")[2]
