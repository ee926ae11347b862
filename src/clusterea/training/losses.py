"""The losses: they pull the two entities of a seed together and push all others away."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.training.hardness import total_hardness

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
    total = total_hardness(
        everyone,
        source,
        target,
        sharpness=sharpness,
        margin=margin,
        mixed_precision=mixed_precision,
    )
    return total / len(source) + 2 * OFFSET


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
