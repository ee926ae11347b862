"""The losses: they pull the two entities of a seed together and push all others away."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

OFFSET = 10.0  # τ of the original: a constant that keeps the loss positive


def nhsm_loss(
    everyone: Tensor,
    source: Tensor,
    target: Tensor,
    *,
    sharpness: float,
    margin: float,
    mixed_precision: bool = False,
) -> Tensor:
    """Normalized hard sample mining (appendix A), over the seeds and negatives of a step.

    With d the squared distance, every z in `everyone` gives the seed (s, t) the losses
    d(s, t) - d(s, z) + γ and d(s, t) - d(t, z) + γ. They are standardized for each s (and t), with
    mean and deviation as constants, multiplied by λ, and combined by log-sum-exp. The paper prints
    the formula with similarities instead of distances, which would push seeds apart.

    Args:
        everyone: (nodes, dim): the embeddings of the step's seeds and negatives, of both sides.
        source: (seeds,): the positions of the seeds' source entities in `everyone`.
        target: (seeds,): the positions of their target entities.
        sharpness: λ.
        margin: γ.
        mixed_precision: Multiply in bfloat16 and add in float32; for GPUs only.
    """
    anchors = everyone.index_select(0, torch.cat([source, target]))  # (2 · seeds, dim)
    left, right = anchors.chunk(2)
    positive = (left - right).square().sum(1).repeat(2)
    own = torch.stack([source, target], dim=1).repeat(2, 1)
    hardness: Tensor = _Hardness.apply(  # type: ignore[no-untyped-call]
        anchors, everyone, positive, own, sharpness, margin, mixed_precision
    )
    return hardness.sum() / len(source)


class _Hardness(torch.autograd.Function):
    """(anchors,): log Σ_z exp(λ · standardized gap + τ), in the memory of one matrix.

    Written by hand, since autograd would write the step's largest matrix a dozen times and keep
    five copies. The gradient of a row with respect to its gaps is its softmax times λ / deviation.
    """

    @staticmethod
    def forward(
        ctx: Any,
        anchors: Tensor,
        everyone: Tensor,
        positive: Tensor,
        own: Tensor,
        sharpness: float,
        margin: float,
        mixed: bool,
    ) -> Tensor:
        # d(a, z) = |a|² + |z|² - 2 a·z
        ctx.mixed = mixed
        gaps = _product(anchors, everyone.T, mixed)
        gaps.mul_(2).sub_(everyone.square().sum(1))
        gaps.add_((positive + margin - anchors.square().sum(1)).unsqueeze(1))
        # A seed's own two entities are a constant, so the loss stops once all others are farther.
        gaps.scatter_(1, own, 0.0)
        deviation, mean = torch.std_mean(gaps, dim=1, keepdim=True, correction=0)
        scale = sharpness / deviation.clamp(min=1e-12)
        gaps.sub_(mean).mul_(scale)
        largest = gaps.amax(1, keepdim=True)
        # A term below e^-60 changes nothing, but denormal numbers make a CPU seven times slower.
        total = gaps.sub_(largest).clamp_(min=-60).exp_().sum(1, keepdim=True)
        slopes = gaps.mul_(scale / total).scatter_(1, own, 0.0)
        ctx.save_for_backward(anchors, everyone, slopes)
        return (largest + total.log()).squeeze(1) + OFFSET

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        anchors, everyone, slopes = ctx.saved_tensors
        slopes = slopes * gradients[0].unsqueeze(1)
        by_anchor, by_other = slopes.sum(1), slopes.sum(0)
        to_anchors = 2 * (_product(slopes, everyone, ctx.mixed) - by_anchor.unsqueeze(1) * anchors)
        to_everyone = 2 * (
            _product(slopes.T, anchors, ctx.mixed) - by_other.unsqueeze(1) * everyone
        )
        return to_anchors, to_everyone, by_anchor, None, None, None, None


def _product(left: Tensor, right: Tensor, mixed: bool) -> Tensor:
    """The matrix product; `mixed` rounds the factors to bfloat16 but adds in float32."""
    if not mixed:
        return left @ right
    return torch.mm(left.bfloat16(), right.bfloat16(), out_dtype=torch.float32)


def margin_loss(
    source: Tensor,
    target: Tensor,
    source_negatives: Tensor,
    target_negatives: Tensor,
    *,
    margin: float,
) -> Tensor:
    """The mean of max(0, d(s, t) + γ - d(s, t')) and the same with s', in L1 distance.

    Args:
        source: (seeds, dim).
        target: (seeds, dim).
        source_negatives: (seeds · k, dim): k replacements of each seed's source, seed by seed.
        target_negatives: (seeds · k, dim): likewise.
        margin: γ.
    """
    draws = len(source_negatives) // len(source)
    positive = (source - target).abs().sum(1).repeat_interleave(draws)
    loss = source.new_zeros(())
    for anchor, negatives in ((source, target_negatives), (target, source_negatives)):
        negative = (anchor.repeat_interleave(draws, dim=0) - negatives).abs().sum(1)
        loss = loss + torch.relu(positive + margin - negative).mean()
    return loss / 2


def rejected_loss(source: Tensor, target: Tensor, *, margin: float) -> Tensor:
    """The mean of max(0, γ - d(s, t)) over rejected pairs, in squared distance.

    Args:
        source: (pairs, dim).
        target: (pairs, dim).
        margin: γ.
    """
    return torch.relu(margin - (source - target).square().sum(1)).mean()
