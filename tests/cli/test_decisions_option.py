"""`clusterea align` with answers: given, or found in the run's folder; warm or in full."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_runs import PAPER, ROUNDS, SHARE, Command, aligned, command, rows, write_pair

from clusterea.workspace import DECISIONS


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pair(tmp_path_factory.mktemp("data") / "pair")


def answers(run: Path, count: int = 3) -> tuple[list[tuple[str, str]], list[tuple[str, str]], str]:
    """Links to accept, links to reject, and the table that says so."""
    links = [(source, target) for source, target, *_ in rows(run / "alignment.tsv")[1:]]
    yes, no = links[:count], links[count : 2 * count]
    said = [(*link, "same") for link in yes] + [(*link, "different") for link in no]
    return yes, no, "".join("\t".join(row) + "\n" for row in said)


def manifest(run: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((run / "run.json").read_text())
    return found


def pairs(run: Path) -> set[tuple[str, str]]:
    return {(source, target) for source, target, *_ in rows(run / "alignment.tsv")[1:]}


class TestFile:
    def test_given(self, pair: Path, tmp_path: Path) -> None:
        run = tmp_path / "run"
        aligned(pair, run)
        yes, no, table = answers(run)
        given = tmp_path / "answers.tsv"
        given.write_text(table)
        told = aligned(pair, run, "--decisions", given).err
        assert "Answers: 3 pairs accepted, 3 rejected, 0 entities without a counterpart" in told
        assert "3 from answers)" in " ".join(told.split())
        assert not pairs(run) & {*yes, *no}
        assert manifest(run)["data"]["rejected"] == 3  # type: ignore[index]

    def test_found_in_the_run(self, pair: Path, tmp_path: Path, clusterea_command: Command) -> None:
        run = tmp_path / "run"
        aligned(pair, run)
        yes, no, table = answers(run)
        given = tmp_path / "answers.tsv"
        given.write_text(table)
        ran = clusterea_command("review", run, "--import", given)
        assert ran.code == 0, ran.err
        assert (run / DECISIONS).exists()
        aligned(pair, run)
        assert not pairs(run) & {*yes, *no}
        aligned(pair, run, "--overwrite")
        assert (run / DECISIONS).exists()  # a person's answers are never removed
        assert not pairs(run) & {*yes, *no}

    def test_a_wrong_file_is_refused_and_nothing_is_lost(
        self, pair: Path, tmp_path: Path, clusterea_command: Command
    ) -> None:
        run = tmp_path / "run"
        aligned(pair, run)
        before = (run / "alignment.tsv").read_bytes()
        given = tmp_path / "answers.tsv"
        given.write_text("a\tb\tmaybe\n")
        ran = clusterea_command("align", pair, "--out", run, *SHARE, *PAPER, "--decisions", given)
        assert ran.code == 2
        assert "answers.tsv line 1: expected same or different, got 'maybe'." in ran.err
        assert "Traceback" not in ran.err
        assert (run / "alignment.tsv").read_bytes() == before

    def test_a_torn_or_empty_file_of_the_run_is_read(self, pair: Path, tmp_path: Path) -> None:
        """As a process leaves it that is killed while it writes."""
        run = tmp_path / "run"
        (run / DECISIONS).parent.mkdir()
        (run / DECISIONS).write_text("")
        aligned(pair, run)
        yes, no, table = answers(run)
        given = tmp_path / "answers.tsv"
        given.write_text(table)
        assert command("review", run, "--import", given).code == 0
        with (run / DECISIONS).open("a") as file:
            file.write("urn:half\ta ro")
        aligned(pair, run)
        assert not pairs(run) & {*yes, *no}

    def test_questions_without_an_answer_are_skipped(self, pair: Path, tmp_path: Path) -> None:
        run = tmp_path / "run"
        aligned(pair, run)
        asked = tmp_path / "asked.tsv"
        assert command("suggest", run, "--count", "5", "--out", asked).code == 0
        lines = asked.read_text().splitlines()
        lines[1] = lines[1].rstrip("\t") + "\tdifferent"
        asked.write_text("\n".join(lines) + "\n")
        told = aligned(pair, run, "--decisions", asked).err
        assert "Answers: 0 pairs accepted, 1 rejected" in told

    def test_stages_one_by_one_see_them(self, pair: Path, tmp_path: Path) -> None:
        run = tmp_path / "run"
        aligned(pair, run)
        _, no, table = answers(run)
        given = tmp_path / "answers.tsv"
        given.write_text(table)
        other = tmp_path / "other"
        other.mkdir()
        assert command("review", run, "--import", given).code == 0
        (other / DECISIONS).write_bytes((run / DECISIONS).read_bytes())
        small = ["--set", "epochs=2", "--set", "dimension=16", "--device", "cpu"]
        trained = command("train", pair, "--out", other, *SHARE, *small)
        assert trained.code == 0, trained.err
        assert "Answers: 3 pairs accepted, 3 rejected" in trained.err
        for stage in ("sample", "fuse", "match", "match"):
            done = command(stage, other, "--device", "cpu")
            assert done.code == 0, done.err
        assert not pairs(other) & {*no}


class TestWarm:
    def test_it_says_so_and_trains_nothing(self, pair: Path, tmp_path: Path) -> None:
        run = tmp_path / "run"
        first = aligned(pair, run, how=ROUNDS)
        assert "Restart" not in first.err
        yes, no, table = answers(run)
        given = tmp_path / "answers.tsv"
        given.write_text(table)
        warm = aligned(pair, run, "--decisions", given, how=ROUNDS)
        assert "Restart    warm" in warm.err
        assert manifest(run)["taken_over"] is not None
        assert not [
            each["stage"]
            for each in manifest(run)["stages"]  # type: ignore[attr-defined]
            if each["stage"].startswith("training")
        ]
        assert not pairs(run) & {*yes, *no}
        full = aligned(pair, run, "--decisions", given, "--full", how=ROUNDS)
        assert "Restart" not in full.err
        assert manifest(run)["taken_over"] is None

    def test_other_commands_go_on_from_it(
        self, pair: Path, tmp_path: Path, clusterea_command: Command
    ) -> None:
        run = tmp_path / "run"
        aligned(pair, run, how=ROUNDS)
        given = tmp_path / "answers.tsv"
        given.write_text(answers(run)[2])
        aligned(pair, run, "--decisions", given, how=ROUNDS)
        before, kept = (run / "alignment.tsv").read_bytes(), {each.name for each in run.iterdir()}
        assert clusterea_command("match", run).code == 0
        assert (run / "alignment.tsv").read_bytes() == before
        assert {each.name for each in run.iterdir()} == kept
        assert clusterea_command("suggest", run, "--count", "4").code == 0
        aligned(pair, run, "--decisions", given, how=ROUNDS)  # it still is a run of this data
        assert (run / "alignment.tsv").read_bytes() == before
