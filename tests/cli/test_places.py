"""Runs at a URI: the same files as in a folder, resumed, moved, and refused with one message.

`fsspec+file://…` is the local disk behind a file system that pyarrow does not know, so that tests
can look at the run there as a folder.
"""

from __future__ import annotations

import json
import signal
import socket
import tempfile
from pathlib import Path

import pytest
from forked import Forked
from tiny_runs import PAPER, SHARE, aligned, command, leftovers, reused, write_pair

import clusterea
from clusterea.workspace import Place

LONG = ["--set", "training.epochs=20"]
OUTPUTS = ("alignment.tsv", "unmatched_source.tsv", "unmatched_target.tsv", "candidates.parquet")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pair(tmp_path_factory.mktemp("data") / "pair")


@pytest.fixture(scope="module")
def local(pair: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("local") / "run"
    aligned(pair, run, *LONG, "--quiet")
    return run


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for copies, so that a test can see what stays in it."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "there" / "run"


def uri(folder: Path) -> str:
    return f"fsspec+file://{folder}"


def contents(run: Path) -> dict[str, bytes]:
    """Of every artifact, and of the outputs that do not tell the time."""
    paths = [*run.glob("*-*/*"), *(run / name for name in (*OUTPUTS, "metrics.json"))]
    return {str(path.relative_to(run)): path.read_bytes() for path in paths if path.is_file()}


def copied(source: Path, target: Path) -> Path:
    """A copy of a run, made through `Place`."""
    place = Place(uri(target))
    for path in source.rglob("*"):
        if path.is_file():
            place.send(path, str(path.relative_to(source)))
    return target


def at(run: Path) -> str:
    """How messages call a run at a URI."""
    return f"fsspec+file://{str(run).lstrip('/')}"


def test_a_run_at_a_uri_has_the_files_of_one_in_a_folder(
    pair: Path, local: Path, run: Path, scratch: Path
) -> None:
    ran = aligned(pair, uri(run), *LONG, "--json")
    assert contents(run) == contents(local)
    assert {each.name for each in run.iterdir()} == {each.name for each in local.iterdir()}
    assert (run / "report.html").read_text().rstrip().endswith("</html>")
    assert json.loads(ran.out)["files"]["alignment"] == f"{at(run)}/alignment.tsv"
    assert not list(scratch.iterdir())


class TestMoved:
    def test_from_a_folder_to_a_uri(self, pair: Path, local: Path, run: Path) -> None:
        copied(local, run)
        again = aligned(pair, uri(run), *LONG, "--json")
        assert all(each for name, each in reused(again.err).items() if name not in NEVER_REUSED)
        assert contents(run) == contents(local)

    def test_from_a_uri_to_a_folder_in_the_middle(self, pair: Path, local: Path, run: Path) -> None:
        copied(local, run)
        for path in run.glob("match-*/*"):
            path.unlink()
        (run / "run.json").unlink()
        kept = reused(aligned(pair, uri(run), *LONG, "--json").err)
        assert kept["fusion"]
        assert not kept["matching"]
        kept = reused(aligned(pair, run, *LONG, "--json").err)  # now as a folder
        assert all(each for name, each in kept.items() if name not in NEVER_REUSED)
        assert contents(run) == contents(local)


NEVER_REUSED = ("evaluation", "writing")


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["training", "sampling: cmcs", "fusion", "matching", "writing"])
def test_killed(stage: str, pair: Path, local: Path, run: Path, tmp_path: Path) -> None:
    asked = ("align", str(pair), "--out", uri(run), *SHARE, *PAPER, *LONG, "--json")
    process = Forked(tmp_path, *asked)
    for line in process.err:
        told = json.loads(line)
        if told["stage"] == stage and told.get("done", 15) >= 15:
            process.send(signal.SIGKILL)
            break
    assert process.wait() == -signal.SIGKILL, "it was done before it could be killed"
    assert not (run / "run.json").exists()
    assert (run / ".lock").exists()
    (run / ".0123.part").write_bytes(b"half a file")
    code, err = Forked(tmp_path, *asked).finish()
    assert code == 0, err
    stages = ["training", "sampling: cmcs", "fusion", "matching"]
    before = stages[: stages.index(stage)] if stage in stages else stages
    assert all(reused(err)[each] for each in before)
    assert contents(run) == contents(local)
    assert not leftovers(run)
    assert not (run / ".lock").exists()
    assert not (run / "checkpoints").exists()


def test_commands_on_a_run(pair: Path, local: Path, run: Path, tmp_path: Path) -> None:
    copied(local, run)
    (run / "report.html").unlink()
    (run / "metrics.json").unlink()
    entity = (local / "alignment.tsv").read_text().splitlines()[1].split("\t")[0]
    assert command("explain", uri(run), entity).out == command("explain", local, entity).out
    assert command("suggest", uri(run)).out == command("suggest", local).out
    assert command("evaluate", uri(run)).code == 0
    assert json.loads((run / "metrics.json").read_text())
    assert f"{at(run)}/report.html" in command("report", uri(run)).out
    assert (run / "report.html").exists()
    assert f"{at(run)}/exported.sssom.tsv" in command("export", uri(run), "--format", "sssom").out
    assert (run / "exported.sssom.tsv").exists()
    assert command("export", uri(run), "--format", "tsv", "--out", tmp_path / "a.tsv").code == 0
    assert (tmp_path / "a.tsv").exists()
    assert command("match", uri(run), "--method", "greedy").code == 0
    assert command("fuse", uri(run), "--set", "candidates=7").code == 0
    assert f"{at(run)}/sample-" in command("sample", uri(run), "--sampler", "vps").out
    refused = command("review", uri(run))
    assert refused.code == 2
    assert "needs a run in a folder" in refused.err


def test_answers_at_a_uri_count(pair: Path, local: Path, run: Path, tmp_path: Path) -> None:
    copied(local, run)
    source, target = (local / "alignment.tsv").read_text().splitlines()[1].split("\t")[:2]
    (tmp_path / "answers.tsv").write_text(f"{source}\t{target}\tdifferent\n")
    assert command("review", run, "--import", tmp_path / "answers.tsv").code == 0
    ran = aligned(pair, uri(run), *LONG)
    assert "1 rejected" in ran.err
    assert f"{at(run)}/decisions.sssom.tsv" in " ".join(ran.err.split())
    assert f"{source}\t{target}\t" not in (run / "alignment.tsv").read_text()


def test_damage_at_a_uri_is_noticed_and_repaired(pair: Path, local: Path, run: Path) -> None:
    copied(local, run)
    for name in ("match", "data"):
        (path,) = run.glob(f"{name}-*/tensors.safetensors")
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
    told = command("export", uri(run), "--format", "tsv")
    assert told.code == 2
    assert at(run) in told.err
    ran = aligned(pair, uri(run), *LONG)
    assert f"{at(run)}/match-" in " ".join(ran.err.split())
    assert contents(run) == contents(local)


def test_other_data_are_refused_and_overwrite_clears(pair: Path, local: Path, run: Path) -> None:
    copied(local, run)
    (run / "notes.txt").write_text("mine")
    asked = ("align", str(pair), "--out", uri(run), "--seeds-share", "0.5", *PAPER)
    refused = command(*asked)
    assert refused.code == 2
    assert f"{at(run)} holds a run of other graphs or seeds" in " ".join(refused.err.split())
    before = set(contents(run))
    assert command(*asked, "--overwrite").code == 0
    assert not {each for each in before & set(contents(run)) if "-" in each}
    assert (run / "notes.txt").read_text() == "mine"


def test_metrics_go_where_there_are_no_test_links(pair: Path, local: Path, run: Path) -> None:
    copied(local, run)
    (run / "metrics.json").write_text("{}")
    assert command("align", pair, "--out", uri(run), *PAPER, "--overwrite").code == 0
    assert not (run / "metrics.json").exists()


class TestDataOfARun:
    def test_a_run_continues_without_its_files(
        self, pair: Path, local: Path, run: Path, scratch: Path
    ) -> None:
        copied(local, run)
        for path in (*run.glob("match-*/*"), *run.glob("*.json"), *run.glob("*.tsv")):
            path.unlink()
        ran = command("align", uri(run), "--out", uri(run), *PAPER, *LONG, "--json")
        assert ran.code == 0, ran.err
        assert reused(ran.err)["fusion"]
        assert contents(run) == contents(local)
        assert not list(scratch.iterdir())

    def test_answers_are_not_taken_over(
        self, pair: Path, local: Path, run: Path, tmp_path: Path
    ) -> None:
        copied(local, run)
        source, target = (local / "alignment.tsv").read_text().splitlines()[1].split("\t")[:2]
        (tmp_path / "answers.tsv").write_text(f"{source}\t{target}\tdifferent\n")
        aligned(pair, run, *LONG, "--decisions", tmp_path / "answers.tsv")
        assert len(list(run.glob("data-*"))) == 2
        ran = command("align", run, "--out", tmp_path / "other", *PAPER, *LONG)
        assert ran.code == 0, ran.err
        links = (tmp_path / "other" / "alignment.tsv").read_bytes()
        assert links == (local / "alignment.tsv").read_bytes()

    def test_other_options_are_refused(self, local: Path, tmp_path: Path) -> None:
        ran = command("align", local, "--out", tmp_path / "other", *SHARE)
        assert ran.code == 2
        assert f"--seeds-share: {local} is a run" in " ".join(ran.err.split())

    def test_a_uri_without_a_run(self, run: Path) -> None:
        ran = command("info", uri(run))
        assert ran.code == 2
        assert f"{at(run)}: expected a run with its data; got none." in " ".join(ran.err.split())


def test_copies_of_killed_processes_are_removed(run: Path, scratch: Path) -> None:
    dead = scratch / f"clusterea-{socket.gethostname()}-{2**22 + 1}-abc" / "s3:" / "run"
    mine = scratch / "clusterea-elsewhere-1-abc"
    for folder in (dead, mine):
        folder.mkdir(parents=True)
    assert command("explain", uri(run), "x").code == 2
    assert list(scratch.iterdir()) == [mine]


def test_a_dry_run_writes_nothing(pair: Path, run: Path) -> None:
    assert command("align", pair, "--out", uri(run), *SHARE, *PAPER, "--dry-run").code == 0
    assert not run.exists()


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("nope://bucket/run", "nope://bucket/run can't be opened"),
        ("fsspec+file:///dev/null/run", "can't be written"),
        ("fsspec+nope://x/run", "can't be opened"),
    ],
)
def test_a_bad_place_is_refused_before_any_work(out: str, told: str, scratch: Path) -> None:
    ran = command("align", "no such data", "--out", out)
    assert ran.code == 2
    assert told in " ".join(ran.err.split())
    assert "no such data" not in ran.err
    assert not list(scratch.iterdir())


def test_a_reader_says_that_there_is_no_run(run: Path) -> None:
    ran = command("explain", uri(run), "x")
    assert ran.code == 2
    assert "expected a run" in ran.err
    assert not run.exists()


def test_a_file_uri_is_a_folder(pair: Path, local: Path, run: Path, scratch: Path) -> None:
    ran = aligned(pair, f"file://{run}", *LONG, "--json")
    assert contents(run) == contents(local)
    assert json.loads(ran.out)["files"]["alignment"] == str(run / "alignment.tsv")


def test_in_python(pair: Path, run: Path) -> None:
    benchmark = clusterea.load(pair, seeds_share=0.3)
    for _ in range(2):  # the second result is read from the run
        result = clusterea.align(benchmark, preset="fast", device="cpu", run=uri(run))
        assert len(result.to_pandas()) == len(result.alignment.links)
        assert result.similarity.num_entities.source == 300
    assert (run / "alignment.tsv").exists()
