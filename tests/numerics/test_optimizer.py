"""`Optimizer` against the classes of `torch.optim`, to the last bit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from clusterea.numerics.optimizer import MOMENTS, Optimizer

THEIRS: dict[str, Callable[[list[Tensor]], torch.optim.Optimizer]] = {
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01, alpha=0.9, eps=1e-7),
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01),
}


def parameters(device: str) -> list[Tensor]:
    draw = torch.Generator().manual_seed(0)
    drawn = (torch.randn(shape, generator=draw) for shape in [(5, 3), (7,), (2,)])
    return [each.to(device).requires_grad_() for each in drawn]


def take_steps(
    optimizer: Optimizer | torch.optim.Optimizer, some: list[Tensor], steps: range
) -> None:
    """The last parameter gets no gradient at first."""
    for step in steps:
        optimizer.zero_grad()
        used = some[:-1] if step < 2 else some
        sum(((each - 0.3).square() * (step + 1)).sum() for each in used).backward()  # type: ignore[union-attr]
        optimizer.step()


def check(name: str, device: str) -> None:
    wanted, found = parameters(device), parameters(device)
    take_steps(THEIRS[name](wanted), wanted, range(6))
    first = Optimizer(name, found, 0.01)
    take_steps(first, found, range(3))
    again = Optimizer(name, found, 0.01)
    again.restore(first.state)  # as after a kill
    take_steps(again, found, range(3, 6))
    for one, other in zip(wanted, found, strict=True):
        assert torch.equal(one, other)
    if MOMENTS[name]:
        assert {float(each["step"]) for each in first.state.values()} == {3.0, 1.0}


@pytest.mark.parametrize("name", MOMENTS)
def test_steps_are_those_of_torch(name: str) -> None:
    check(name, "cpu")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", MOMENTS)
def test_also_on_a_gpu(name: str) -> None:
    check(name, "cuda")


def test_without_gradients_nothing_changes() -> None:
    some = parameters("cpu")
    before = [each.detach().clone() for each in some]
    Optimizer("adam", some, 0.01).step()
    Optimizer("adam", [], 0.01).step()
    assert all(torch.equal(one, other) for one, other in zip(some, before, strict=True))


def test_the_compiler_is_not_imported() -> None:
    program = (
        "import sys, torch; from clusterea.numerics.optimizer import Optimizer\n"
        "one = torch.ones(2, requires_grad=True); one.sum().backward()\n"
        "for name in ('adam', 'rmsprop', 'sgd'): Optimizer(name, [one], 0.1).step()\n"
        "assert 'torch._dynamo' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
