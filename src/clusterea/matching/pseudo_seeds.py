"""`pseudo_seeds`: probable pairs, which the next round learns from."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from clusterea.matching.cells import OpenCells
from clusterea.matching.mutual import mutual


def pseudo_seeds(
    cells: OpenCells,
    *,
    threshold: float,
    chances: Callable[[Tensor, Tensor], Tensor] | None = None,
    otherwise: int = 0,
) -> Tensor:
    """(n, 2) int64: pairs of entities that are each other's best, above a threshold.

    They are ordered by hashes of their names, so later random draws do not depend on ids.

    Args:
        cells: Those of entities without a seed, with scores in [0, 1].
        threshold: A pair's probability must exceed it.
        chances: Gives the probabilities of (n, 2) pairs with these scores; by default the scores.
        otherwise: How many of the most probable pairs to take if none exceeds the threshold.
    """
    chosen = mutual(cells)
    order = chosen.hashes().argsort()
    pairs = torch.stack([chosen.ends.source, chosen.ends.target], dim=1)[order]
    sure = chosen.values[order]
    if chances is not None:
        sure = chances(pairs, sure)
    is_taken = sure > threshold
    if not bool(is_taken.any()):
        is_taken[sure.argsort(descending=True, stable=True)[:otherwise]] = True
    return pairs[is_taken]
