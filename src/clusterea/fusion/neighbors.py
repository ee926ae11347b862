"""The global view: nearest neighbours over all undecided entities, both ways (equation 16)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.fusion.undecided import Undecided
from clusterea.numerics.cells import from_cells
from clusterea.numerics.knn import Nearest, Neighbors, nearest, nearest_approximate
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
        return nearest_approximate(source.cpu(), target.cpu(), count, entities.keys, config.seed)
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
    device = found.source.indices.device

    def cells(neighbors: Neighbors) -> tuple[Tensor, Tensor, Tensor]:
        near = neighbors.indices[:, : config.candidates]
        own = torch.arange(len(near), device=device).unsqueeze(1).expand_as(near)
        return own.flatten(), near.flatten(), neighbors.values[:, : config.candidates].flatten()

    rows, columns, forth = cells(found.source)
    other_columns, other_rows, back = cells(found.target)
    ids = entities.entities.map(lambda side: side.to(device))
    return from_cells(
        ids.source[torch.cat([rows, other_rows])],
        ids.target[torch.cat([columns, other_columns])],
        torch.cat([forth, back]),
        entities.num_entities,
    )
