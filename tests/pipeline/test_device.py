"""A GPU is used for the first time beside other work."""

from __future__ import annotations

import threading

import pytest
import torch

from clusterea.pipeline import choose_device
from clusterea.pipeline import device as module


def wait() -> None:
    for each in threading.enumerate():
        if each.name == "gpu":
            each.join()


def test_for_a_cpu_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "Thread", None)
    assert choose_device("cpu") == torch.device("cpu")


def test_an_error_is_told_where_the_gpu_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[torch.device] = []
    told: list[threading.ExceptHookArgs] = []

    def broken(device: torch.device) -> None:
        used.append(device)
        raise RuntimeError("out of memory")

    monkeypatch.setattr(threading, "excepthook", told.append)
    monkeypatch.setattr(module, "_use", broken)
    gpu = torch.device("cuda:0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("cuda:0") == gpu
    wait()
    assert used == [gpu]
    assert not told


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_is_used() -> None:
    choose_device("cuda")
    wait()
    module._use(torch.device("cuda:0"))  # raises nothing
