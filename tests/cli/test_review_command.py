from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_runs import aligned, links_of, write_pair

from clusterea.pipeline import load_run
from clusterea.review.log import DecisionLog
from clusterea.review.server import bound
from clusterea.types import Answer
from conftest import Ran

Command = Callable[..., Ran]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("review")
    aligned(write_pair(folder / "pair"), folder / "run")
    return folder / "run"


def answers_of(run: Path) -> list[Answer]:
    return DecisionLog(run / "decisions.sssom.tsv", load_run(run).named.names).answers


def test_import_adds_answers_and_tells_the_rest(
    run: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    (one, two), *_ = sorted(links_of(run / "alignment.tsv") - {("source", "target")})
    file = tmp_path / "theirs.tsv"
    file.write_text(f"{one}\t{two}\tdifferent\nnobody\t{two}\tsame\n")
    before = answers_of(run)
    ran = clusterea_command("review", run, "--import", file)
    assert ran.code == 0, ran.err
    assert "1 answer added; 1 left out, of entities that are not in the graphs." in ran.out
    added = answers_of(run)[len(before) :]
    names = load_run(run).named.names
    (answer,) = added
    assert answer.source is not None
    assert answer.target is not None
    assert (names.source[answer.source], names.target[answer.target]) == (one, two)
    assert answer.verdict == "different"


def test_import_refuses_the_runs_own_file(run: Path, clusterea_command: Command) -> None:
    own = run / "decisions.sssom.tsv"
    named = load_run(run).named
    DecisionLog(own, named.names).append(Answer(0, 0, "unsure"))
    before = own.read_bytes()
    ran = clusterea_command("review", run, "--import", own)
    assert ran.code == 2
    assert "must name another file" in ran.err
    assert own.read_bytes() == before


def test_a_port_in_use_is_told(run: Path, clusterea_command: Command) -> None:
    with bound(None) as taken:
        port = taken.getsockname()[1]
        ran = clusterea_command("review", run, "--no-browser", "--port", str(port))
    assert ran.code == 2
    assert f"port {port} is in use" in ran.err
    assert ran.out == ""


def test_what_is_no_run_is_refused(tmp_path: Path, clusterea_command: Command) -> None:
    ran = clusterea_command("review", tmp_path, "--no-browser")
    assert ran.code == 2
    assert "expected a run" in ran.err
    assert list(tmp_path.iterdir()) == []
