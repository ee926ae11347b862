"""`search`: the nearest neighbors of all entities, in both directions."""

from __future__ import annotations

import torch

from clusterea.config import FusionConfig
from clusterea.fusion.undecided import Undecided
from clusterea.numerics.knn import Nearest, OnStep, nearest
from clusterea.numerics.lists import nearest_approximate


def search(
    entities: Undecided,
    config: FusionConfig,
    device: torch.device,
    block_cells: int | None = None,
    progress: OnStep | None = None,
) -> Nearest:
    """Each entity's nearest of the other side: as many as candidates and hubness need."""
    count = max(config.candidates, config.hubness_neighbors)
    source, target = entities.vectors
    if config.on(device.type).search == "approximate":
        return nearest_approximate(
            source.float(),
            target.float(),
            count,
            entities.keys,
            config.seed,
            compared=config.search_compared,
            sample=config.search_sample,
            rounds=config.search_rounds,
            progress=progress,
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
