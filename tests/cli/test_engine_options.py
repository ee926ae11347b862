"""`--engine`, `--address` and `--shards` of `clusterea align`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import clusterea
from clusterea.cli import main
from clusterea.data.synthetic import SHAPES, generate, write_openea
from clusterea.errors import InputError
from clusterea.threads import available_cpus


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "pair"
    write_openea(generate(SHAPES["demo"], seed=0), folder)
    return folder


def planned(
    pair: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *more: str
) -> str:
    asked = ["align", str(pair), "--seeds-share", "0.3", "--out", "none", "--dry-run", *more]
    monkeypatch.setattr("sys.argv", ["clusterea", *asked])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    return printed.out if not ended.value.code else printed.err


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("", None),
        ("--shards 1", "Engine     local, 1 shard"),
        ("--shards 8", "Engine     local, 8 shards on disk"),
        ("--engine ray", f"Engine     ray on this machine, {2 * available_cpus()} shards"),
        ("--engine ray --address h:6379 --shards 8", "Engine     ray at h:6379, 8 shards"),
    ],
)
def test_the_plan(
    options: str,
    line: str | None,
    pair: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = planned(pair, monkeypatch, capsys, *options.split()).splitlines()
    assert [each for each in told if each.startswith("Engine")] == ([line] if line else [])
    described = json.loads(planned(pair, monkeypatch, capsys, "--json", *options.split()))
    assert described["engine"] == ("ray" if "ray" in options else "local")
    shards = options.partition("--shards ")[2] or (line and "ray" in line and line.split()[5])
    assert described["shards"] == (int(shards) if shards else None)
    assert any(each.startswith("Units") for each in told) == (shards not in (None, "1"))
    assert bool(described["expected"]["worker_bytes"]) == bool(shards)


def test_ray_computes_on_cpus(
    pair: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = planned(pair, monkeypatch, capsys, "--engine", "ray", "--device", "cuda")
    assert "--engine=ray computes on CPUs, but got --device=cuda." in refused
    described = planned(pair, monkeypatch, capsys, "--engine", "ray", "--json")
    assert json.loads(described)["device"] == "cpu"


def test_in_python(tmp_path: Path) -> None:
    data = clusterea.load([("a", "r", "b")], [("x", "s", "y")], links=[("a", "x"), ("b", "y")])
    with pytest.raises(InputError, match=r"^shards must be an int in \[1, inf\). Got 0 instead."):
        clusterea.align(data, "fast", shards=0)
    with pytest.raises(InputError, match="^no Ray cluster answers at 127.0.0.1:1"):
        clusterea.align(data, "fast", engine="ray", address="127.0.0.1:1", run=tmp_path / "run")
    assert not (tmp_path / "run").exists()
