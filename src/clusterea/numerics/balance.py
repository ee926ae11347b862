"""`balanced`: assigns rows to classes of bounded size."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def balanced(scores: Tensor, largest_share: float) -> Tensor:
    """(n,) int64: the best class of each row, with a bound on the size of a class.

    A class that is too large gives up the rows that lose least. Each of them moves to its best
    class among those that have not given up any.

    Args:
        scores: (n, classes): higher is better.
        largest_share: The largest class, as a multiple of the mean; at least 1.
    """
    count, classes = scores.shape
    most = math.ceil(largest_share * count / classes)
    scores = scores.clamp(min=-1e30)  # a class with a score of -inf can still be assigned
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
