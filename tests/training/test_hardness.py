"""The sum of hardness: rows with few and with many cells that count, in blocks of any size."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clusterea.numerics.block_sizes import BLOCK_SIZES
from clusterea.training import hardness
from clusterea.training.hardness import total_hardness

SEEDS, NODES, DIM = 12, 90, 6
SOURCE, TARGET = torch.arange(SEEDS), torch.arange(SEEDS, 2 * SEEDS).flip(0)


@pytest.fixture
def everyone() -> Tensor:
    draw = torch.Generator().manual_seed(4)
    return torch.randn(NODES, DIM, dtype=torch.float64, generator=draw).requires_grad_()


def by_autograd(everyone: Tensor, sharpness: float, margin: float) -> Tensor:
    """The whole matrix at once."""
    anchors = everyone[torch.cat([SOURCE, TARGET])]
    positive = (everyone[SOURCE] - everyone[TARGET]).square().sum(1).repeat(2)
    gaps = positive[:, None] + margin - (anchors[:, None] - everyone).square().sum(2)
    own = torch.stack([SOURCE, TARGET], dim=1).repeat(2, 1)
    gaps = gaps.scatter(1, own, 0.0)
    mean, deviation = gaps.mean(1, keepdim=True), gaps.std(1, keepdim=True, correction=0)
    return (sharpness * (gaps - mean.detach()) / deviation.detach()).logsumexp(1).sum()


@pytest.mark.parametrize("cells_in_block", [1, 5 * NODES, 1 << 21])
@pytest.mark.parametrize("sparse_share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("sharpness", [2.0, 30.0])
def test_value_and_gradient(
    everyone: Tensor,
    sharpness: float,
    sparse_share: float,
    cells_in_block: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hardness, "SPARSE_SHARE", sparse_share)
    monkeypatch.setitem(BLOCK_SIZES, "hardness", {"cpu": cells_in_block})
    found = total_hardness(everyone, SOURCE, TARGET, sharpness=sharpness, margin=1.5)
    wanted = by_autograd(everyone, sharpness, 1.5)
    torch.testing.assert_close(found, wanted)
    # Cells that are left out change the gradient by some e^-20 of its size.
    (gradient,), (right,) = (
        torch.autograd.grad(found, everyone),
        torch.autograd.grad(wanted, everyone),
    )
    torch.testing.assert_close(gradient, right, rtol=1e-6, atol=1e-6 * float(right.abs().max()))


def test_the_gradient_is_multiplied_by_the_one_that_comes_in(everyone: Tensor) -> None:
    total = total_hardness(everyone, SOURCE, TARGET, sharpness=30.0, margin=1.0)
    (whole,) = torch.autograd.grad(total, everyone, retain_graph=True)
    (part,) = torch.autograd.grad(total / 8, everyone)
    assert torch.equal(part, whole / 8)
