"""`clusterea report`: the page written anew from what a run's folder holds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tiny_runs import Command, aligned, write_pair

CPU = ["--device", "cpu"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pair(tmp_path_factory.mktemp("data") / "pair")


@pytest.fixture(scope="module")
def whole(pair: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reported") / "run"
    aligned(pair, folder)
    return folder


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def test_it_is_made_again_from_the_rest(run: Path, clusterea_command: Command) -> None:
    before = (run / "report.html").stat().st_size
    (run / "report.html").unlink()
    ran = clusterea_command("report", run)
    assert ran.code == 0, ran.err
    assert ran.out == f"  {run / 'report.html'}\n"
    assert (run / "report.html").stat().st_size == pytest.approx(before, rel=0.02)


def test_it_shows_the_mini_batches_that_were_used(run: Path, clusterea_command: Command) -> None:
    """Not those that were merely tried since."""
    tried = clusterea_command("sample", run, "--sampler", "metis-cps", "--num-batches", "3", *CPU)
    assert tried.code == 0, tried.err
    assert clusterea_command("report", run).code == 0
    assert "metis-cps" not in (run / "report.html").read_text()


def test_another_similarity_leaves_the_links_before(run: Path, clusterea_command: Command) -> None:
    clusterea_command("export", run, "--format", "tsv")
    links = (run / "exported.tsv").read_bytes()
    for candidates in (5, 6):  # twice: the whole run is still remembered
        fused = clusterea_command("fuse", run, "--set", f"candidates={candidates}", *CPU)
        assert fused.code == 0, fused.err
    assert clusterea_command("report", run).code == 0
    assert clusterea_command("export", run, "--format", "tsv").code == 0
    assert (run / "exported.tsv").read_bytes() == links


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '"run"'])
def test_a_damaged_run_json(content: str, run: Path, clusterea_command: Command) -> None:
    (run / "run.json").write_text(content)
    ran = clusterea_command("report", run)
    assert ran.code == 2
    assert ran.err == (
        f"error: {run / 'run.json'}: is damaged, or of another version; "
        "`clusterea align` with the same data and --out makes it again.\n"
    )


def test_it_is_the_page_that_match_wrote(run: Path, clusterea_command: Command) -> None:
    assert clusterea_command("match", run, "--method", "mutual", *CPU).code == 0
    made = (run / "report.html").stat().st_size
    assert clusterea_command("report", run).code == 0
    assert (run / "report.html").stat().st_size == pytest.approx(made, rel=0.02)
    assert "mutual" in (run / "report.html").read_text()
