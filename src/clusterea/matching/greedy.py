"""`greedy`: cells by falling score, each entity once."""

from __future__ import annotations

import numpy as np
import torch

from clusterea.matching.cells import Cells, joined
from clusterea.matching.mutual import mutual

FEW = 1 << 17  # cells that a loop is through with before a round of whole-tensor work pays
PROGRESS = 0.97  # a round that leaves more than this share is one of many: the loop is faster


def greedy(cells: Cells) -> Cells:
    """The cells that a walk from the first to the last takes, if it takes each entity once.

    Rounds of mutual bests take just the same: nothing that comes before a mutual best can use up
    either of its entities. Each round drops the cells of entities that are taken, so that all
    rounds together cost little more than the first. Where scores form long chains, each round would
    fix only their heads; then, and for the last few cells, it walks.
    """
    parts = []
    while len(cells) > FEW:
        taken = mutual(cells)
        left = cells.without(taken)
        parts.append(taken)
        slow = len(left) > PROGRESS * len(cells)
        cells = left
        if slow:
            break
    return joined([*parts, _walk(cells)])


def _walk(cells: Cells) -> Cells:
    """The same, one cell after the other."""
    cells = cells.take(cells.order())
    sources, targets = cells.ends.map(lambda end: end.cpu().numpy())
    free_source, free_target = cells.keys.map(lambda keys: np.ones(keys.numel(), dtype=np.bool_))
    taken = []
    for start in range(0, len(cells), FEW):
        source, target = sources[start : start + FEW], targets[start : start + FEW]
        still = (free_source[source] & free_target[target]).nonzero()[0]
        for at, s, t in zip(
            still.tolist(), source[still].tolist(), target[still].tolist(), strict=True
        ):
            if free_source[s] and free_target[t]:
                free_source[s] = free_target[t] = False
                taken.append(start + at)
    return cells.take(torch.tensor(taken, dtype=torch.int64, device=cells.values.device))
