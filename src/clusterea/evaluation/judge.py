"""`judge`: precision and recall of links."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.errors import InputError
from clusterea.numerics.lookup import verdicts
from clusterea.types import IntArray, MatchingScores


def judge(links: IntArray | Tensor, test_links: IntArray | Tensor) -> MatchingScores:
    """Precision and recall of `links` on the test links.

    Links between entities without a test link count as wrong. Repeated links count once. Without
    links, precision is 0.

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
    pairs, truths = (torch.unique(each.reshape(-1, 2), dim=0) for each in (returned, wanted))
    correct = int(verdicts(pairs, truths)[1].sum())
    return MatchingScores(correct / max(len(pairs), 1), correct / len(truths))
