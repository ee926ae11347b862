"""`pseudo_seeds`: matches so sure that another round may learn from them."""

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
) -> Tensor:
    """(n, 2) int64: pairs that are each other's best, and sure enough.

    They follow the hashes of their names, so that ids have no say in what is drawn from them.

    Args:
        similarity: Scores of source × target, in [0, 1].
        ties: Each side's (entities,) int64 keys of names.
        seeds: (n, 2): links already known, whose entities are left out.
        threshold: What a pair's chance must exceed.
        seed: Of the order of ties.
        chances: From (n, 2) pairs and their scores to how sure each is; the scores if not given.
    """
    decided = torch.asarray(seeds, dtype=torch.int64, device=similarity.values.device, copy=True)
    cells = open_cells(similarity, ties, Pair(decided[:, 0], decided[:, 1]), seed)
    chosen = mutual(cells)
    order = chosen.hashes().argsort()
    pairs = torch.stack([chosen.ends.source, chosen.ends.target], dim=1)[order]
    sure = chosen.values[order]
    if chances is not None:
        sure = chances(pairs, sure)
    return pairs[sure > threshold]
