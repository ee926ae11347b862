"""`judge`: precision and recall of links."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.errors import InputError
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
    returned, wanted = (
        torch.asarray(each, dtype=torch.int64, device="cpu", copy=True).reshape(-1, 2)
        for each in (links, test_links)
    )
    # Each pair as one number: sorting rows is slow.
    width = 1 + max(int(each[:, 1].max()) for each in (returned, wanted) if len(each))
    keys = (each[:, 0] * width + each[:, 1] for each in (returned, wanted))
    pairs, truths = map(torch.unique, keys)
    correct = int(torch.isin(pairs, truths, assume_unique=True).sum())
    return MatchingScores(correct / max(len(pairs), 1), correct / len(truths))
