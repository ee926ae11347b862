from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from clusterea.engines import InMemory, open_engine
from clusterea.engines.out_of_core import OutOfCore
from clusterea.errors import InputError


def test_the_local_engines(tmp_path: Path) -> None:
    with open_engine() as engine:
        assert isinstance(engine, InMemory)
        assert engine.shards is None
    with open_engine("local", 1) as engine:
        assert isinstance(engine, InMemory)
        assert engine.shards == 1
    with open_engine("local", 8, folder=tmp_path) as engine:
        assert isinstance(engine, OutOfCore)
        assert engine.shards == 8
        held = engine.put(torch.ones(100_000))
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())
    del held


@pytest.mark.parametrize(
    ("kind", "shards", "address", "message"),
    [
        ("spark", None, None, "unknown engine 'spark'; choose one of local, ray."),
        ("local", 0, None, "--shards must be an int in [1, inf). Got 0 instead."),
        ("ray", -2, None, "--shards must be an int in [1, inf). Got -2 instead."),
        ("local", None, "h:1", "--address is that of a Ray cluster: add --engine=ray."),
        ("ray", None, "h", "--address must be HOST:PORT, as 10.0.0.1:6379. Got 'h' instead."),
        (
            "ray",
            None,
            "ray://h:10001",
            "--address must be HOST:PORT, as 10.0.0.1:6379. Got 'ray://h:10001' instead.",
        ),
        (
            "ray",
            None,
            "127.0.0.1:1",
            "no Ray cluster answers at 127.0.0.1:1. Start one with `ray start --head`, and give "
            "its address.",
        ),
    ],
)
def test_what_is_refused(kind: str, shards: int | None, address: str | None, message: str) -> None:
    with pytest.raises(InputError) as caught, open_engine(kind, shards, address):
        pass
    assert str(caught.value) == message


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # importing it now fails
    with pytest.raises(InputError) as caught, open_engine("ray"):
        pass
    assert str(caught.value) == (
        "--engine ray needs Ray, which is not installed. Install it with pip install "
        "'clusterea[ray]'."
    )


def test_engines_import_neither_torch_nor_ray() -> None:
    code = "import sys, clusterea.engines; print({'ray', 'torch'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"
