"""`ranking`: Hits@k and MRR from the rivals of each test link."""

from __future__ import annotations

import math

import torch

from clusterea.evaluation.rivals import Rivals
from clusterea.types import Ranking

HITS = (1, 10)


def ranking(rivals: Rivals) -> Ranking:
    """Hits@1, hits@10 and MRR over all test links; a test link without a cell adds 0.

    With b better and t tied candidates (the truth included), each rank of b + 1 … b + t is equally
    likely. The rank is at most k with probability (k - b) / t, and its mean is b + (t + 1) / 2.
    """
    links = rivals.tied.numel()
    # Equal terms are counted and the sum is exact, so the order of the links does not matter.
    base = int(rivals.tied.max()) + 1
    pairs, counts = torch.unique(rivals.better * base + rivals.tied, return_counts=True)
    found = [
        (count, *divmod(pair, base))
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True)
        if pair % base
    ]

    def hits(k: int) -> float:
        chances = (n * min(max((k - better) / tied, 0.0), 1.0) for n, better, tied in found)
        return math.fsum(chances) / links

    mrr = math.fsum(n / (better + (tied + 1) / 2) for n, better, tied in found) / links
    return Ranking({k: hits(k) for k in HITS}, mrr)
