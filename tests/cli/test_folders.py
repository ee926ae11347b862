"""A run's folder: whose data it holds, who writes into it, and a disk that is full."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_runs import PAPER, SHARE, Command, aligned, command, write_pair

from clusterea.data import load
from clusterea.errors import InputError
from clusterea.library import align
from clusterea.run_lock import run_lock

OTHER = ["--seeds-share", "0.5"]
CPU = ["--device", "cpu"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pair(tmp_path_factory.mktemp("data") / "pair")


@pytest.fixture(scope="module")
def whole(pair: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("whole") / "run"
    aligned(pair, run)
    return run


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run"))


def contents(run: Path) -> dict[str, bytes]:
    return {str(p.relative_to(run)): p.read_bytes() for p in run.rglob("*") if p.is_file()}


class TestOtherData:
    @pytest.mark.parametrize(
        "asked", [["align", *PAPER], ["align", *PAPER, "--dry-run"], ["train"]]
    )
    def test_it_is_refused_and_nothing_is_changed(
        self, asked: list[str], run: Path, pair: Path
    ) -> None:
        before = contents(run)
        ran = command(asked[0], pair, "--out", run, *asked[1:], *OTHER)
        assert ran.code == 2
        assert ran.err == (
            f"error: {run} holds a run of other graphs or seeds. "
            "Choose another folder, or remove that run with --overwrite.\n"
        )
        assert contents(run) == before

    @pytest.mark.parametrize("damage", ["{", "of an earlier version"])
    def test_it_is_refused_if_nothing_says_what_it_is_of(
        self, damage: str, run: Path, pair: Path
    ) -> None:
        (run / "run.json").write_text(damage)
        for artifact in run.glob("*-*/"):
            shutil.rmtree(artifact)
        before = contents(run)
        ran = command("align", pair, "--out", run, *PAPER, *OTHER)
        assert ran.code == 2
        assert ran.err == (
            f"error: {run} holds a run of other graphs or seeds, or one that can't be read. "
            "Choose another folder, or remove that run with --overwrite.\n"
        )
        assert contents(run) == before

    @pytest.mark.parametrize("manifest", ["{", None])
    def test_without_a_manifest_the_data_say_what_it_is_of(
        self, manifest: str | None, run: Path, pair: Path
    ) -> None:
        whole = contents(run)
        (run / "run.json").unlink() if manifest is None else (run / "run.json").write_text(manifest)
        ran = command("align", pair, "--out", run, *PAPER, *OTHER)
        assert ran.code == 2
        assert "holds a run of other graphs or seeds. Choose" in ran.err
        aligned(pair, run)
        after = contents(run)
        for name in ("alignment.tsv", "metrics.json"):
            assert after[name] == whole[name]
        assert command("export", run, "--format", "tsv").code == 0

    def test_a_run_that_nobody_can_read_is_made_again_if_it_has_no_results(
        self, run: Path, pair: Path
    ) -> None:
        """There is nothing to lose: it was killed before it wrote any, and then damaged."""
        whole = (run / "alignment.tsv").read_bytes()
        for path in run.iterdir():
            if not path.name.startswith("data-"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for recipe in run.glob("data-*/recipe.json"):
            recipe.write_text("{")
        aligned(pair, run)
        assert (run / "alignment.tsv").read_bytes() == whole

    def test_overwrite_removes_the_run_and_nothing_else(self, run: Path, pair: Path) -> None:
        command("export", run, "--format", "tsv")
        for name in ("notes.txt", "train-mine", "checkpoints/mine"):
            (run / name).parent.mkdir(exist_ok=True)
            (run / name).write_text("mine")
        old = {path.name for path in run.glob("*-*/")}
        aligned(pair, run, "--quiet", "--overwrite", *OTHER)
        left = {path.name for path in run.iterdir()}
        assert not old & left
        assert "exported.tsv" not in left
        assert {"notes.txt", "train-mine", "checkpoints"} <= left
        assert (run / "checkpoints/mine").read_text() == "mine"
        aligned(pair, run.with_name("fresh"), "--quiet", *OTHER)
        for name in ("alignment.tsv", "metrics.json", "candidates.parquet"):
            assert (run / name).read_bytes() == (run.with_name("fresh") / name).read_bytes()

    def test_a_dry_run_removes_nothing(self, run: Path, pair: Path) -> None:
        before = contents(run)
        aligned(pair, run, "--overwrite", "--dry-run", *OTHER)
        assert contents(run) == before

    def test_other_settings_of_the_same_data_go_on(self, run: Path, pair: Path) -> None:
        ran = aligned(pair, run, "--set", "matching.method=best")
        assert "training: reused" in ran.err

    def test_files_that_no_run_made_are_not_replaced(self, pair: Path, tmp_path: Path) -> None:
        (tmp_path / "alignment.tsv").write_text("mine")
        (tmp_path / "notes.txt").write_text("mine")
        ran = command("align", pair, "--out", tmp_path, *SHARE, *PAPER)
        assert ran.code == 2
        assert ran.err == (
            f"error: {tmp_path / 'alignment.tsv'} exists, but no run made it. "
            "Choose another folder, or replace it with --overwrite.\n"
        )
        (tmp_path / "alignment.tsv").unlink()
        assert aligned(pair, tmp_path, "--quiet").code == 0
        assert (tmp_path / "notes.txt").read_text() == "mine"

    def test_as_a_library(self, run: Path, pair: Path) -> None:
        task = load(pair, seeds_share=0.5).task
        settings = {"propagation.dimension": 8, "propagation.features": 8}
        with pytest.raises(InputError, match="other graphs or seeds.* with overwrite=True"):
            align(task, "fast", settings=settings, device="cpu", run=run)
        first = align(task, "fast", settings=settings, device="cpu", run=run, overwrite=True)
        again = align(task, "fast", settings=settings, device="cpu", run=run)
        assert first.keys == again.keys
        assert all(cost.reused for cost in again.timings)


@pytest.mark.parametrize(
    "asked",
    [
        *(["align", "{pair}", "--out", "{run}", *SHARE], ["train", "{pair}", "--out", "{run}"]),
        *(["sample", "{run}"], ["fuse", "{run}"], ["match", "{run}"], ["report", "{run}"]),
        ["evaluate", "{run}"],
    ],
    ids=lambda asked: asked[0],
)
def test_a_folder_in_use_is_refused(asked: list[str], run: Path, pair: Path) -> None:
    before = contents(run)
    with run_lock(run, "clusterea align"):
        ran = command(*(word.format(run=run, pair=pair) for word in asked))
        assert ran.code == 2
        said = f"error: {run} is in use by `clusterea align` (process {os.getpid()} on "
        assert ran.err.startswith(said)
        assert ran.err.count("\n") == 1
        read = command("export", run, "--format", "tsv", "--out", run.with_name("links.tsv"))
        assert read.code == 0
    assert contents(run) == before


def test_a_library_call_holds_the_folder_too(run: Path, pair: Path) -> None:
    task = load(pair, seeds_share=0.3).task
    with run_lock(run, "clusterea align"), pytest.raises(InputError, match="is in use by"):
        align(task, "fast", device="cpu", run=run)


class TestFullDisk:
    def test_one_line_says_where_what_and_how_much(
        self, pair: Path, tmp_path: Path, clusterea_command: Command
    ) -> None:
        disk = tmp_path / "disk"
        disk.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk],
            capture_output=True,
            check=False,
        )
        if mounted.returncode:
            pytest.skip("only root may mount a small disk")
        try:
            ran = clusterea_command("align", pair, "--out", disk / "run", *SHARE, *PAPER, "--quiet")
            assert not list(disk.rglob("*.part"))
        finally:
            subprocess.run(["umount", disk], check=True)
        assert ran.code == 2
        assert ran.err.startswith(f"error: {disk}/run/")
        assert "can't be written: the disk is full (at least " in ran.err
        assert ".part" not in ran.err
        assert ran.err.count("\n") == 1

    def test_the_plan_says_how_much_and_warns(
        self, pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        enough = aligned(pair, tmp_path / "run", "--dry-run")
        assert re.search(r"^Disk       about \d+ MiB$", enough.out, re.MULTILINE)
        assert "too little" not in enough.out
        monkeypatch.setattr("clusterea.cli.plan.free_space", lambda path: 1 << 10)
        little = aligned(pair, tmp_path / "run", "--dry-run")
        assert f"The disk of {tmp_path / 'run'} has 1 KiB free, which may be" in little.out

    def test_a_limit_of_file_size(self, tmp_path: Path) -> None:
        code = (
            "import resource, signal, sys; from pathlib import Path\n"
            "import torch; from clusterea.workspace import write_tensors\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))\n"
            "write_tensors(Path(sys.argv[1]), {'x': torch.zeros(1 << 20)})\n"
        )
        path = tmp_path / "tensors.safetensors"
        ran = subprocess.run(
            [sys.executable, "-c", code, path], capture_output=True, check=False, text=True
        )
        said = "can't be written: File too large (at least 4 MiB needed, "
        assert said in ran.stderr.splitlines()[-1], ran.stderr
        assert list(tmp_path.iterdir()) == []
