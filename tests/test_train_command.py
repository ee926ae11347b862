"""`clusterea train`: what it writes, what it says, and how it goes on after a kill."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from conftest import Ran, stored

Command = Callable[..., Ran]
QUICK = ["--seeds-share", "0.3", "--set", "dimension=16", "--device", "cpu"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from dataclasses import replace

    from clusterea.data.synthetic import SHAPES, generate, write_openea
    from clusterea.types import Pair

    folder = tmp_path_factory.mktemp("data") / "pair"
    shape = replace(
        SHAPES["demo"], entities=Pair(300, 250), triples=Pair(1500, 1200), relations=Pair(9, 7)
    )
    write_openea(generate(shape, seed=0), folder)
    return folder


def artifact(run: Path) -> Path:
    (path,) = run.glob("train-*/tensors.safetensors")
    return path


def test_it_writes_unit_vectors_and_finds_them_again(
    pair: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    run = tmp_path / "run"
    first = clusterea_command("train", pair, "--out", run, "--set", "epochs=2", *QUICK)
    assert first.code == 0, first.err
    assert str(artifact(run)) in first.out.replace("\n", "")
    assert first.err.startswith("training: ")
    tensors = stored(artifact(run))
    assert {name: tuple(t.shape) for name, t in tensors.items()} == {
        "source": (300, 96),
        "target": (250, 96),
    }
    for rows in tensors.values():
        assert torch.allclose(rows.norm(dim=1), torch.ones(len(rows)), atol=1e-5)
    assert not list((run / "checkpoints").iterdir())
    written = artifact(run).stat().st_mtime_ns
    again = clusterea_command("train", pair, "--out", run, "--set", "epochs=2", *QUICK)
    assert again.out == first.out
    assert again.err == "training: reused\n"
    assert artifact(run).stat().st_mtime_ns == written


@pytest.mark.parametrize("model", ["gcn-align", "rrea", "dual-amn"])
@pytest.mark.parametrize("full_graph", [False, True])
def test_every_model_both_ways(
    model: str, full_graph: bool, pair: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    how = ["--full-graph"] if full_graph else []
    ran = clusterea_command(
        "train", pair, "--out", tmp_path, "--model", model, *how, "--set", "epochs=12", *QUICK
    )
    assert ran.code == 0, ran.err
    assert artifact(tmp_path).is_file()


def test_labels_need_no_training(pair: Path, tmp_path: Path, clusterea_command: Command) -> None:
    asked = [
        *("train", pair, "--out", tmp_path, "--model", "label-propagation", "--seeds-share", "0.3"),
        *("--set", "dimension=32", "--set", "propagation.features=48", "--device", "cpu"),
    ]
    first = clusterea_command(*asked)
    assert first.code == 0, first.err
    assert first.out.startswith("300 and 250 embeddings of 48 dimensions:\n")
    assert str(artifact(tmp_path)) in first.out.replace("\n", "")
    assert first.err.startswith("propagation: ")
    for rows in stored(artifact(tmp_path)).values():
        lengths = rows.norm(dim=1)
        reached = lengths > 0  # by some label
        assert reached.float().mean() > 0.9
        assert torch.allclose(lengths[reached], torch.ones(int(reached.sum())), atol=1e-5)
    assert not (tmp_path / "checkpoints").exists()
    written = artifact(tmp_path).stat().st_mtime_ns
    again = clusterea_command(*asked)
    assert again.out == first.out
    assert again.err == "propagation: reused\n"
    assert artifact(tmp_path).stat().st_mtime_ns == written


@pytest.mark.slow
def test_killed_in_the_middle_it_ends_with_the_same_bytes(pair: Path, tmp_path: Path) -> None:
    def start(run: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "clusterea", "train", str(pair), "--out", str(run)]
        return subprocess.Popen(
            [*command, "--set", "epochs=60", *QUICK],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    assert start(tmp_path / "unbroken").wait() == 0
    broken = tmp_path / "broken"
    for _ in range(2):  # twice, at whatever moment it happens to be in
        process = start(broken)
        kept = broken / "checkpoints"
        before = [path.stat().st_mtime_ns for path in kept.glob("*.safetensors")]
        while process.poll() is None:
            now = [path.stat().st_mtime_ns for path in kept.glob("*.safetensors")]
            if now and now != before:
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.005)
        assert process.wait() == -signal.SIGKILL, "it was done before it could be killed"
        assert not list(broken.glob("train-*"))
    assert start(broken).wait() == 0
    assert artifact(broken).read_bytes() == artifact(tmp_path / "unbroken").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "dual-anm"], "unknown model 'dual-anm'.*Did you mean 'dual-amn'"),
        (["--model", "label-propagtion"], "Did you mean 'label-propagation'"),
        (
            ["--model", "label-propagation", "--set", "epochs=3"],
            "unknown setting 'epochs'; choose one of dimension, features",
        ),
        (
            ["--model", "label-propagation", "--set", "rounds=-1"],
            r"rounds must be an int in \[0, inf\). Got -1",
        ),
        (["--set", "epcohs=3"], "unknown setting 'epcohs'.*Did you mean 'epochs'"),
        (["--set", "epochs"], "--set must be FIELD=VALUE"),
        (["--set", "epochs=many"], "epochs must be of type int. Got 'many'"),
        (["--set", "training.epochs=0"], r"epochs must be an int in \[1, inf\). Got 0"),
        (["--set", "loss=softmax"], "unknown loss 'softmax'; choose one of nhsm, margin"),
        (["--device", "tpu"], "--device must be auto, cpu or cuda. Got 'tpu'"),
        (["--set", "optimizer=sgd"], "optimizer must be adam where fanout is set"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_written(
    arguments: list[str], message: str, pair: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    ran = clusterea_command("train", pair, "--out", tmp_path / "run", *arguments)
    assert ran.code == 2
    assert re.search(message, ran.err), ran.err
    assert not (tmp_path / "run").exists()


def test_training_that_comes_to_nothing_says_so(
    pair: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    ran = clusterea_command(
        "train", pair, "--out", tmp_path, *QUICK, "--set", "learning_rate=1e9", "--set", "epochs=2"
    )
    assert ran.code == 2
    assert "training failed" in ran.err
    assert "Try another learning rate than 1e+09" in ran.err
    assert not list(tmp_path.glob("train-*"))
