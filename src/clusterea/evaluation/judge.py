"""`judge`: precision and recall of anybody's alignment."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.errors import InputError
from clusterea.types import IntArray, MatchingScores


def judge(links: IntArray | Tensor, test_links: IntArray | Tensor) -> MatchingScores:
    """Precision and recall of `links`, as the test links see them.

    Every link counts, also one between entities of no test link: a user would take it for true.
    A link that is given twice counts once. No links have precision 0.

    Args:
        links: (n, 2), in any order, not necessarily one-to-one; without the seeds.
        test_links: (m, 2); at least one.

    Raises:
        InputError: There are no test links.
    """
    if not len(test_links):
        raise InputError("there are no test links to judge by.")
    returned = torch.asarray(links, dtype=torch.int64, device="cpu", copy=True)
    wanted = torch.asarray(test_links, dtype=torch.int64, device="cpu", copy=True)
    # One number a pair: no id reaches the width, so no two pairs share one.
    width = int(torch.cat([returned, wanted])[:, 1].max()) + 1
    pairs = torch.unique(returned[:, 0] * width + returned[:, 1])
    truths = torch.unique(wanted[:, 0] * width + wanted[:, 1])
    correct = int(torch.isin(pairs, truths, assume_unique=True).sum())
    return MatchingScores(correct / max(pairs.numel(), 1), correct / truths.numel())
