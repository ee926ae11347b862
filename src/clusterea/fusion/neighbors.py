"""The global view: nearest neighbours over all undecided entities, both ways (equation 16)."""

from __future__ import annotations

from collections.abc import Callable

import torch

from clusterea.config import FusionConfig
from clusterea.fusion.undecided import Undecided
from clusterea.numerics.cells import both_ways
from clusterea.numerics.knn import Nearest, nearest, nearest_approximate
from clusterea.types import Similarity


def search(
    entities: Undecided,
    config: FusionConfig,
    device: torch.device,
    block_cells: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Nearest:
    """Each place's nearest of the other side: enough for candidates and hubness alike."""
    count = max(config.candidates, config.hubness_neighbors)
    source, target = entities.vectors
    if config.search == "approximate":
        return nearest_approximate(
            source.cpu().float(), target.cpu().float(), count, entities.keys, config.seed
        )
    return nearest(
        source,
        target,
        count,
        entities.keys,
        config.seed,
        device=device,
        block_cells=block_cells,
        progress=progress,
    )


def neighbors_view(entities: Undecided, found: Nearest, config: FusionConfig) -> Similarity:
    """The cosines of both directions' candidates. A pair that both found counts twice."""
    candidates = found.map(lambda side: side.first(config.candidates))
    return both_ways(candidates, entities=entities.entities, num_entities=entities.num_entities)
