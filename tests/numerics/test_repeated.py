"""Repeated steps: as many as asked for, each with its own random numbers."""

from __future__ import annotations

import pytest
import torch

from clusterea.numerics.repeated import WARM, repeated

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
TIMES = [0, 1, WARM, WARM + 1, 50]


def draws(times: int, device: str) -> torch.Tensor:
    """(50,): what each step has drawn, zeros where there was none."""
    drop = torch.Generator(device).manual_seed(1)
    number = torch.zeros(1, dtype=torch.int64, device=device)
    found = torch.zeros(50, device=device)

    def step() -> None:
        found.index_add_(0, number, torch.rand(1, generator=drop, device=device))
        number.add_(1)

    repeated(step, times, drop)
    assert int(number) == times
    return found.cpu()


@pytest.mark.parametrize("times", TIMES)
def test_each_step_is_run_once(times: int) -> None:
    found = draws(times, "cpu")
    assert len(set(found[:times].tolist())) == times
    assert not found[times:].any()


@gpu
@pytest.mark.gpu
class TestGpu:
    @pytest.mark.parametrize("times", TIMES)
    def test_each_step_is_run_once(self, times: int) -> None:
        found = draws(times, "cuda")
        assert len(set(found[:times].tolist())) == times
        assert not found[times:].any()
        assert torch.equal(found, draws(times, "cuda"))

    def test_a_step_that_waits_is_not_captured(self) -> None:
        drop = torch.Generator("cuda").manual_seed(1)
        number = torch.zeros(1, device="cuda")

        def step() -> None:
            number.add_(1)
            float(number)  # waits

        repeated(step, 20, drop)
        assert float(number) == 20
        assert draws(50, "cuda").all()  # captures still work
