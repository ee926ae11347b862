"""`pseudo_seeds`: probable pairs, which the next round learns from."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from clusterea.matching.cells import open_cells
from clusterea.matching.mutual import mutual
from clusterea.types import IntArray, Pair, Similarity


def pseudo_seeds(
    similarity: Similarity,
    ties: Pair[Tensor],
    seeds: IntArray | Tensor,
    *,
    threshold: float,
    seed: int = 0,
    chances: Callable[[Tensor, Tensor], Tensor] | None = None,
    otherwise: int = 0,
) -> Tensor:
    """(n, 2) int64: pairs of entities that are each other's best, above a threshold.

    They are ordered by hashes of their names, so later random draws do not depend on ids.

    Args:
        similarity: Scores of source × target, in [0, 1].
        ties: Each side's (entities,) int64 keys of names.
        seeds: (n, 2): known links, whose entities are left out.
        threshold: A pair's probability must exceed it.
        seed: Of the order of ties.
        chances: Gives the probabilities of (n, 2) pairs with these scores; by default the scores.
        otherwise: How many of the most probable pairs to take if none exceeds the threshold.
    """
    decided = torch.asarray(seeds, dtype=torch.int64, device=similarity.values.device, copy=True)
    cells = open_cells(similarity, ties, Pair(decided[:, 0], decided[:, 1]), seed)
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
