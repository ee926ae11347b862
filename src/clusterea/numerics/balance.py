"""Balanced classes: none is much larger than the mean."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def balanced(scores: Tensor, largest_share: float) -> Tensor:
    """(n,) int64: the best class of each row, but no class with more than its share of rows.

    A class that is too large gives up the rows that lose least. Each goes to its best class among
    those that have not given up any.

    Args:
        scores: (n, classes): higher is better.
        largest_share: At most this many times the mean, at least 1.
    """
    count, classes = scores.shape
    most = math.ceil(largest_share * count / classes)
    scores = scores.clamp(min=-1e30)  # a class that is out of the question is still open
    labels = scores.argmax(1)
    is_open = torch.ones(classes, dtype=torch.bool, device=scores.device)
    while True:
        sizes = labels.bincount(minlength=classes)
        fullest = int(sizes.argmax())
        surplus = int(sizes[fullest]) - most
        if surplus <= 0:
            return labels
        is_open[fullest] = False
        members = (labels == fullest).nonzero().flatten()
        others = scores[members].masked_fill_(~is_open, -torch.inf).max(1)
        loss = scores[members, fullest] - others.values
        leaving = loss.argsort(stable=True)[:surplus]
        labels[members[leaving]] = others.indices[leaving]
