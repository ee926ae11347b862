"""`match`: from a similarity to an alignment, in shards of its rows."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.matching import find_matcher
from clusterea.matching.confidence import confidence
from clusterea.sharded.open_cells import ShardedCells
from clusterea.sharded.scores import HeldScores
from clusterea.types import NO_ENTITIES, Alignment, IntArray, Pair


def match(
    scores: HeldScores,
    ties: Pair[Tensor],
    seeds: IntArray | Tensor,
    *,
    method: str = "one-to-one",
    seed: int = 0,
    structural: Pair[IntArray] = NO_ENTITIES,
) -> Alignment:
    """The alignment: links, the most confident first, and the unmatched entities.

    Args:
        scores: Of source × target. The work is done on their device.
        ties: Each side's (entities,) int64 keys of names: they decide between equal scores.
        seeds: (n, 2): known links. Their entities get no other link and don't count as unmatched.
        method: A name in `MATCHERS`.
        seed: Of the order of ties.
        structural: Entities of each side that are never linked. They don't count as unmatched.
    """
    matcher = find_matcher(method)
    decided = torch.asarray(seeds, dtype=torch.int64, device=scores.nothing.device, copy=True)
    cells = ShardedCells.of(scores, ties, Pair(decided[:, 0], decided[:, 1]), seed)
    chosen = matcher(cells)
    links = torch.stack([chosen.ends.source, chosen.ends.target], dim=1)
    sure = confidence(scores.compared(links, cells.is_open))
    order = chosen.hashes().argsort(descending=True, stable=True)
    order = order[sure[order].argsort(descending=True, stable=True)]
    links = links[order]
    seen = (
        Pair(*torch.cat([links, decided]).T)
        .zip(structural)
        .map(lambda side: torch.cat([side[0], torch.tensor(side[1]).to(side[0])]))
    )
    return Alignment(links, sure[order], seen.zip(scores.num_entities).map(_others))


def _others(side: tuple[Tensor, int]) -> Tensor:
    """The entities of a side that are not in `seen`, ascending."""
    seen, size = side
    left = torch.ones(size, dtype=torch.bool, device=seen.device)
    left[seen] = False
    return left.nonzero().flatten()
