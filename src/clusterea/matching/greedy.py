"""`greedy`: the best cells first, each entity once."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.matching.cells import Cells, OpenCells, joined
from clusterea.matching.mutual import mutual
from clusterea.numerics.block_sizes import BLOCK_SIZES
from clusterea.types import Pair

FEW = 1 << 17  # up to so many cells, a loop is faster than rounds of tensor operations
PROGRESS = 0.97  # if a round leaves more than this share of the cells, a loop is faster
MANY = 1 << 23  # up to so many, some 60 bytes each
PATIENCE = 10  # slow rounds in a row, after which a loop takes more than `MANY` too


def greedy(cells: OpenCells) -> Cells:
    """The cells taken in order, from the first to the last; each entity is taken once.

    Rounds that take all mutual bests give the same cells, since no cell before a mutual best has
    one of its entities. A round drops the cells of taken entities, so all rounds together cost
    little more than the first. Once few cells are left, or if a round takes few (long chains of
    scores), the rest is sorted in memory. It is more than `MANY` cells only if rounds don't help.
    """
    parts, slow = [], 0
    while len(cells) > FEW:
        taken = mutual(cells)
        left = cells.without(taken)
        parts.append(taken)
        slow = slow + 1 if len(left) > PROGRESS * len(cells) else 0
        cells = left
        if len(cells) <= BLOCK_SIZES["chosen"][taken.values.device.type]:
            break
        if slow and (len(cells) <= MANY or slow == PATIENCE):
            break
    return joined([*parts, _sorted(cells.whole())])


def _sorted(cells: Cells) -> Cells:
    """`greedy` in memory: rounds over the cells in their order, then a loop over the last few."""
    cells = cells.take(cells.order())
    free = cells.keys.map(lambda keys: torch.ones_like(keys, dtype=torch.bool))
    left, parts = torch.arange(len(cells), device=cells.values.device), []
    while len(left) > FEW:
        ends = Pair(*(end[left] for end in cells.ends))
        is_first = ends.zip(free).map(lambda side: _is_first(*side))
        parts.append(left[is_first.source & is_first.target])
        for mask, end in free.zip(cells.ends):
            mask[end[parts[-1]]] = False
        before, left = len(left), left[free.source[ends.source] & free.target[ends.target]]
        if len(left) > PROGRESS * before:
            break
    return cells.take(torch.cat([*parts, _walk(cells, left, free.map(Tensor.cpu))]))


def _is_first(ends: Tensor, free: Tensor) -> Tensor:
    """(cells,) bool: whether no cell before it has the same entity of one side."""
    at = torch.arange(len(ends), device=ends.device)
    firsts = at.new_full(free.shape, len(at)).scatter_reduce_(0, ends, at, "amin")
    return firsts[ends] == at


def _walk(cells: Cells, left: Tensor, free: Pair[Tensor]) -> Tensor:
    """The cells that a loop over those at `left` takes. Marks their entities as not free."""
    sources, targets = cells.ends.map(lambda end: end[left].cpu().numpy())
    free_source, free_target = free.map(Tensor.numpy)
    taken = []
    for start in range(0, len(left), FEW):
        source, target = sources[start : start + FEW], targets[start : start + FEW]
        still = (free_source[source] & free_target[target]).nonzero()[0]
        for at, s, t in zip(
            still.tolist(), source[still].tolist(), target[still].tolist(), strict=True
        ):
            if free_source[s] and free_target[t]:
                free_source[s] = free_target[t] = False
                taken.append(start + at)
    return left[torch.tensor(taken, dtype=torch.int64, device=left.device)]
