"""`greedy`: the best cells first, each entity once."""

from __future__ import annotations

import numpy as np
import torch

from clusterea.matching.cells import Cells, OpenCells, joined
from clusterea.matching.mutual import mutual

FEW = 1 << 17  # up to so many cells, a loop is faster than rounds of tensor operations
PROGRESS = 0.97  # if a round leaves more than this share of the cells, a loop is faster
MANY = 1 << 23  # up to so many, some 60 bytes each
PATIENCE = 10  # slow rounds in a row, after which a loop takes more than `MANY` too


def greedy(cells: OpenCells) -> Cells:
    """The cells taken in order, from the first to the last; each entity is taken once.

    Rounds that take all mutual bests give the same cells, since no cell before a mutual best has
    one of its entities. A round drops the cells of taken entities, so all rounds together cost
    little more than the first. If a round takes few cells (long chains of scores), or few are left,
    a loop takes the rest. It needs all of them in memory, so it takes more than `MANY` cells only
    if rounds don't help.
    """
    parts, slow = [], 0
    while len(cells) > FEW:
        taken = mutual(cells)
        left = cells.without(taken)
        parts.append(taken)
        slow = slow + 1 if len(left) > PROGRESS * len(cells) else 0
        cells = left
        if slow and (len(cells) <= MANY or slow == PATIENCE):
            break
    return joined([*parts, _walk(cells.whole())])


def _walk(cells: Cells) -> Cells:
    """`greedy` as a loop over the cells."""
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
