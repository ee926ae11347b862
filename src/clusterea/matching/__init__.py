"""Matching methods: from a similarity to an alignment. A new one is a line in `MATCHERS`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from clusterea.errors import look_up
from clusterea.matching.best import best
from clusterea.matching.calibrated import (
    Trial,
    calibrated,
    chances,
    fit_confidence,
    supported,
)
from clusterea.matching.cells import Cells, open_cells
from clusterea.matching.confidence import confidence
from clusterea.matching.features import Gains, has_matched_neighbors
from clusterea.matching.greedy import greedy
from clusterea.matching.hungarian import hungarian
from clusterea.matching.mutual import mutual
from clusterea.matching.one_to_one import one_to_one
from clusterea.matching.pseudo_seeds import pseudo_seeds
from clusterea.matching.questions import questions
from clusterea.matching.stable import stable
from clusterea.types import NO_ENTITIES, Alignment, IntArray, Pair, Similarity

__all__ = [
    "MATCHERS",
    "Cells",
    "Gains",
    "Trial",
    "calibrated",
    "chances",
    "find_matcher",
    "fit_confidence",
    "has_matched_neighbors",
    "match",
    "pseudo_seeds",
    "questions",
    "supported",
]

Matcher = Callable[[Cells], Cells]  # the cells to choose from → those chosen
MATCHERS: dict[str, Matcher] = {
    "one-to-one": one_to_one,
    "greedy": greedy,
    "mutual": mutual,
    "best": best,
    "stable": stable,
    "hungarian": hungarian,
}


def find_matcher(name: str) -> Matcher:
    """The matching method called `name`. The error for an unknown name lists the known ones."""
    return look_up("matching", name, MATCHERS)


def match(
    similarity: Similarity,
    ties: Pair[Tensor],
    seeds: IntArray | Tensor,
    *,
    method: str = "one-to-one",
    seed: int = 0,
    structural: Pair[IntArray] = NO_ENTITIES,
) -> Alignment:
    """The alignment: links, the most confident first, and the unmatched entities.

    Args:
        similarity: Scores of source × target. The work is done on its device.
        ties: Each side's (entities,) int64 keys of names: they decide between equal scores.
        seeds: (n, 2): known links. Their entities get no other link and don't count as unmatched.
        method: A name in `MATCHERS`.
        seed: Of the order of ties.
        structural: Entities of each side that are never linked. They don't count as unmatched.
    """
    matcher = find_matcher(method)
    decided = torch.asarray(seeds, dtype=torch.int64, device=similarity.values.device, copy=True)
    cells = open_cells(similarity, ties, Pair(decided[:, 0], decided[:, 1]), seed)
    chosen = matcher(cells)
    sure = confidence(cells, chosen)
    order = chosen.hashes().argsort(descending=True, stable=True)
    order = order[sure[order].argsort(descending=True, stable=True)]
    links = torch.stack([chosen.ends.source, chosen.ends.target], dim=1)[order]
    seen = (
        Pair(*torch.cat([links, decided]).T)
        .zip(structural)
        .map(lambda side: torch.cat([side[0], torch.tensor(side[1]).to(side[0])]))
    )
    return Alignment(links, sure[order], seen.zip(similarity.num_entities).map(_others))


def _others(side: tuple[Tensor, int]) -> Tensor:
    """The entities of a side that are not in `seen`, ascending."""
    seen, size = side
    left = torch.ones(size, dtype=torch.bool, device=seen.device)
    left[seen] = False
    return left.nonzero().flatten()
