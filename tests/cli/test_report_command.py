"""`clusterea report`: the page written anew from what a run's folder holds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tiny_runs import Command, aligned, write_pair

from clusterea.checksums import sealed

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


def test_links_older_than_the_similarity(run: Path, clusterea_command: Command) -> None:
    clusterea_command("fuse", run, "--samplers", "cmcs", "--set", "candidates=5", *CPU)
    ran = clusterea_command("report", run)
    assert ran.code == 2
    assert "fused a similarity after its last links. Run `clusterea match` first." in ran.err


def test_without_run_json_it_has_no_timings(run: Path, clusterea_command: Command) -> None:
    (run / "run.json").unlink()
    assert clusterea_command("report", run).code == 0


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '"run"'])
def test_a_damaged_run_json(content: str, run: Path, clusterea_command: Command) -> None:
    (run / "run.json").write_text(content)
    ran = clusterea_command("report", run)
    assert ran.code == 2
    assert ran.err == f"error: {run / 'run.json'}: is damaged; delete it to do without.\n"


def test_timings_of_other_links_are_left_out(run: Path, clusterea_command: Command) -> None:
    described = json.loads((run / "run.json").read_text())
    described["config"]["training"]["model"] = "a-model-of-that-run"
    del described["checksum"]
    (run / "run.json").write_text(json.dumps(sealed("run", described)))
    assert clusterea_command("report", run).code == 0
    assert "a-model-of-that-run" in (run / "report.html").read_text()
    clusterea_command("match", run, "--method", "mutual", *CPU)
    assert clusterea_command("report", run).code == 0
    assert "a-model-of-that-run" not in (run / "report.html").read_text()
