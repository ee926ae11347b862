"""`pseudo_seeds`: matches so sure that another round may learn from them."""

from __future__ import annotations

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
) -> Tensor:
    """(n, 2) int64: pairs that are each other's best, with a score above the threshold.

    They follow the hashes of their names, so that ids have no say in what is drawn from them.

    Args:
        similarity: Scores of source × target, in [0, 1].
        ties: Each side's (entities,) int64 keys of names.
        seeds: (n, 2): links already known, whose entities are left out.
        threshold: What a score must exceed.
        seed: Of the order of ties.
    """
    decided = torch.asarray(seeds, dtype=torch.int64, device=similarity.values.device, copy=True)
    cells = open_cells(similarity, ties, Pair(decided[:, 0], decided[:, 1]), seed)
    chosen = mutual(cells)
    chosen = chosen.take(chosen.values > threshold)
    order = chosen.hashes().argsort()
    return torch.stack([chosen.ends.source, chosen.ends.target], dim=1)[order]
