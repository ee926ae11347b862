"""Both losses against loops, and the hand-written gradient against autograd's."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clusterea.training.losses import OFFSET, margin_loss, nhsm_loss

SHARPNESS, MARGIN = 3.0, 1.5
SOURCE, TARGET = torch.tensor([0, 5, 2]), torch.tensor([6, 1, 8])


@pytest.fixture
def everyone() -> Tensor:
    draw = torch.Generator().manual_seed(5)
    return torch.randn(10, 4, dtype=torch.float64, generator=draw).requires_grad_()


def nhsm_by_loops(everyone: Tensor) -> Tensor:
    """The loss; the mean and deviation of each anchor are constants."""
    total = torch.zeros((), dtype=everyone.dtype)

    def distance(one: Tensor, other: Tensor) -> Tensor:
        return (one - other).square().sum()

    for s, t in zip(SOURCE.tolist(), TARGET.tolist(), strict=True):
        for anchor in (s, t):
            gaps = torch.stack(
                [
                    torch.zeros((), dtype=everyone.dtype)
                    if z in (s, t)
                    else distance(everyone[s], everyone[t])
                    - distance(everyone[anchor], everyone[z])
                    + MARGIN
                    for z in range(len(everyone))
                ]
            )
            mean, deviation = gaps.mean().detach(), gaps.std(correction=0).detach()
            total = total + (SHARPNESS * (gaps - mean) / deviation + OFFSET).logsumexp(0)
    return total / len(SOURCE)


def nhsm(everyone: Tensor) -> Tensor:
    return nhsm_loss(everyone, SOURCE, TARGET, sharpness=SHARPNESS, margin=MARGIN)


class TestNhsm:
    def test_value_and_gradient(self, everyone: Tensor) -> None:
        wanted = nhsm_by_loops(everyone)
        loss = nhsm(everyone)
        torch.testing.assert_close(loss, wanted)
        torch.testing.assert_close(
            torch.autograd.grad(loss, everyone), torch.autograd.grad(wanted, everyone)
        )

    def test_a_step_down_the_gradient_moves_a_seed_together(self, everyone: Tensor) -> None:
        moved = everyone.detach().clone().requires_grad_()
        for _ in range(30):
            (gradient,) = torch.autograd.grad(nhsm(moved), moved)
            moved = (moved - 0.02 * gradient).detach().requires_grad_()
        before, after = (
            ((rows[SOURCE] - rows[TARGET]).norm(dim=1) / torch.pdist(rows).mean()).detach()
            for rows in (everyone, moved)
        )
        assert (after < before).all()

    def test_a_lone_pair_has_nothing_to_learn(self) -> None:
        pair = torch.randn(2, 3, dtype=torch.float64).requires_grad_()
        loss = nhsm_loss(
            pair, torch.tensor([0]), torch.tensor([1]), sharpness=SHARPNESS, margin=MARGIN
        )
        torch.testing.assert_close(
            loss.detach(), 2 * (torch.tensor(2.0, dtype=torch.float64).log() + OFFSET)
        )
        (gradient,) = torch.autograd.grad(loss, pair)
        assert not gradient.any()

    def test_far_negatives_at_the_papers_sharpness_stay_finite(self) -> None:
        rows = 100 * torch.randn(500, 8, generator=torch.Generator().manual_seed(0))
        rows.requires_grad_()
        seeds = torch.arange(0, 20)
        loss = nhsm_loss(rows, seeds, seeds + 20, sharpness=30, margin=1)
        (gradient,) = torch.autograd.grad(loss, rows)
        assert loss.isfinite()
        assert gradient.isfinite().all()
        assert gradient.any()

    def test_identical_rows_stay_finite(self) -> None:
        rows = torch.full((8, 3), 0.3).requires_grad_()
        loss = nhsm_loss(rows, torch.tensor([0]), torch.tensor([1]), sharpness=30, margin=1)
        (gradient,) = torch.autograd.grad(loss, rows)
        assert loss.isfinite()
        assert gradient.isfinite().all()


class TestMargin:
    SEEDS, DRAWS, DIM = 3, 2, 4

    @pytest.fixture
    def parts(self) -> list[Tensor]:
        draw = torch.Generator().manual_seed(2)
        sizes = self.SEEDS, self.SEEDS, self.SEEDS * self.DRAWS, self.SEEDS * self.DRAWS
        return [
            torch.randn(size, self.DIM, dtype=torch.float64, generator=draw).requires_grad_()
            for size in sizes
        ]

    def by_loops(self, parts: list[Tensor], margin: float) -> Tensor:
        source, target, source_negatives, target_negatives = parts
        terms = []
        for seed in range(self.SEEDS):
            positive = (source[seed] - target[seed]).abs().sum()
            for number in range(seed * self.DRAWS, (seed + 1) * self.DRAWS):
                for anchor, other in (
                    (source[seed], target_negatives[number]),
                    (target[seed], source_negatives[number]),
                ):
                    terms.append((positive + margin - (anchor - other).abs().sum()).clamp(min=0))
        return torch.stack(terms).mean()

    @pytest.mark.parametrize("margin", [0.1, 3.0])
    def test_value_and_gradient(self, parts: list[Tensor], margin: float) -> None:
        source, target, source_negatives, target_negatives = parts
        loss = margin_loss(source, target, source_negatives, target_negatives, margin=margin)
        wanted = self.by_loops(parts, margin)
        torch.testing.assert_close(loss, wanted)
        torch.testing.assert_close(
            torch.autograd.grad(loss, parts), torch.autograd.grad(wanted, parts)
        )

    def test_is_zero_once_negatives_are_far(self, parts: list[Tensor]) -> None:
        source, _, far, _ = parts
        loss = margin_loss(source, source, far + 100, far - 100, margin=3.0)
        assert loss == 0
