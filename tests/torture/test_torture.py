"""The torture programs, for as long as a test may take; `make torture` runs them for long."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import corrupt_runs
import kill_runs
import pytest

from clusterea.workspace import write_tensors
from conftest import stored


@pytest.mark.slow
def test_kills(capsys: pytest.CaptureFixture[str]) -> None:
    assert kill_runs.main(["--kills", "3", "--kinds", "fast"]) == 0
    assert "0 faults, 3 kills" in capsys.readouterr().out


@pytest.mark.slow
def test_corruptions(capsys: pytest.CaptureFixture[str]) -> None:
    assert corrupt_runs.main(["--trials", "10", "--kinds", "fast", "paper"]) == 0
    assert "10 trials: 0 faults" in capsys.readouterr().out


@pytest.mark.slow
def test_another_result_without_an_error_is_a_fault(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corrupt_runs, "DAMAGES", [less_sure])
    monkeypatch.setattr(corrupt_runs, "is_stored", lambda path: path.parent.match("match-*"))
    monkeypatch.setattr(corrupt_runs, "HALVES", {})
    monkeypatch.setattr(corrupt_runs, "COMMANDS", {"export": corrupt_runs.COMMANDS["export"]})
    assert corrupt_runs.main(["--trials", "1", "--kinds", "fast"]) == 1
    assert "exit code 0" in capsys.readouterr().out


class Repaired(corrupt_runs.Runs):
    """A run that `align` has made again, and what `export` gives before the damage and after."""

    def __init__(self, run: Path, before: corrupt_runs.Result, after: corrupt_runs.Result) -> None:
        self.run = run
        self._results = {"before": before, "after": after}
        run.mkdir()

    def result(self, kind: str, name: str) -> corrupt_runs.Result:
        return ALIGNED if name == "align" else self._results["after"]

    def wanted(self, kind: str, state: str, name: str) -> corrupt_runs.Result:
        return ALIGNED if name == "align" else self._results["before"]


ALIGNED = corrupt_runs.Result(0, "144 links", {"alignment.tsv": b"a b 0.5"})
EXPORTED = corrupt_runs.Result(0, "144 links", {"exported.tsv": b"a b 0.5"})


@pytest.mark.parametrize(
    ("after", "found"),
    [
        (EXPORTED, "refused in one line, then repaired"),
        (replace(EXPORTED, out="143 links"), "faults"),
        (replace(EXPORTED, files={"exported.tsv": b"a b 0.4"}), "faults"),
        (replace(EXPORTED, code=2), "faults"),
    ],
)
def test_another_result_after_the_repair_is_a_fault(
    after: corrupt_runs.Result, found: str, tmp_path: Path
) -> None:
    runs = Repaired(tmp_path / "run", EXPORTED, after)
    assert corrupt_runs.repaired(runs, "fast", "finished", "export", "said") == found


def less_sure(path: Path, draw: random.Random) -> None:
    """Halves the confidence, and makes the checksum anew."""
    del draw
    tensors = stored(path.with_name("tensors.safetensors"))
    tensors["confidence"] /= 2
    write_tensors(path.with_name("tensors.safetensors"), tensors, path.parent.name)
