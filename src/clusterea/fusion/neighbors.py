"""The global view: nearest neighbours over all undecided entities, both ways (equation 16)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.fusion.undecided import Undecided
from clusterea.numerics.cells import both_ways
from clusterea.numerics.knn import Nearest, nearest
from clusterea.numerics.lists import nearest_approximate
from clusterea.numerics.sparse_sinkhorn import sparse_sinkhorn
from clusterea.types import Pair, Similarity


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
    if config.search == "approximate" and device.type == "cpu":
        return nearest_approximate(
            source.float(), target.float(), count, entities.keys, config.seed, progress=progress
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


def normalized_view(
    found: Nearest, outside: Pair[Tensor] | None, config: FusionConfig
) -> Similarity:
    """Sinkhorn on the candidates of both directions: what mini-batches approximate, sparsely.

    It is by place, so that its sums are added in an order that owes nothing to entities' ids.
    """
    candidates = both_ways(found.map(lambda side: side.first(config.candidates)), twice=False)
    return sparse_sinkhorn(candidates, config.sinkhorn_temperature, config.sinkhorn_rounds, outside)
