"""The local view: each mini-batch's similarities, normalized by Sinkhorn (section 4.4)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.fusion.undecided import Undecided
from clusterea.numerics.blocks import best_of_block, block_product
from clusterea.numerics.cells import Cells, from_parts
from clusterea.numerics.dots import pair_dots
from clusterea.numerics.sinkhorn import (
    PRODUCT_CELLS,
    Potentials,
    sinkhorn,
    sinkhorn_of_products,
    values,
)
from clusterea.types import Pair, Partition, Similarity


def mini_batch_view(
    entities: Undecided,
    partition: Partition,
    outside: Pair[Tensor] | None,
    config: FusionConfig,
    device: torch.device,
    progress: Callable[[int, int], None] | None = None,
    block_cells: int | None = None,
) -> Similarity:
    """The union of each row's and each column's best cells, in every mini-batch.

    One mini-batch's matrix at a time is in memory, once. A cell's value is computed anew from the
    exact cosine and the potentials, so that entities with equal vectors have equal values.

    Args:
        entities: Who takes part.
        partition: Which mini-batch each entity is in.
        outside: For each place, the similarity that stands for having no partner.
        config: Temperature, rounds, candidates.
        device: Where to compute, and where the result will be.
        progress: Called with the number of mini-batches done, and of all.
        block_cells: Of the slabs in which best cells are sought; speed and memory only.
    """
    places = Partition(
        partition.labels.zip(entities.entities).map(lambda side: side[0].cpu()[side[1]]),
        partition.num_batches,
    )
    nothing = torch.empty(0, dtype=torch.int64, device=device)
    parts: list[Cells] = [(nothing, nothing, nothing.float())]
    for done, batch in enumerate(places.mini_batches()):
        if all(len(side) for side in batch):
            parts.append(_cells(entities, batch, outside, config, device, block_cells))
        if progress:
            progress(done + 1, partition.num_batches)
    return from_parts(parts, entities.num_entities)


def _cells(
    entities: Undecided,
    batch: Pair[Tensor],
    outside: Pair[Tensor] | None,
    config: FusionConfig,
    device: torch.device,
    block_cells: int | None,
) -> Cells:
    """Rows, columns and values of one mini-batch's best cells."""
    vectors = entities.vectors.zip(batch).map(lambda side: _taken(*side).to(device))
    keys = entities.keys.zip(batch).map(lambda side: _taken(*side).to(device))
    potentials = Potentials(*(torch.zeros(len(side), device=device) for side in batch))
    temperature = config.sinkhorn_temperature
    if config.sinkhorn:
        options = outside and outside.zip(batch).map(lambda side: _taken(*side).to(device))
        potentials = _potentials(vectors, options, config, block_cells)
    shifts = Pair(potentials.source, potentials.target).map(lambda each: each * temperature)
    rows, columns = best_of_block(
        vectors, shifts, config.candidates, keys, config.seed, block_cells
    )
    cosines = pair_dots(vectors.source, vectors.target, rows, columns)
    scores = values(cosines, rows, columns, potentials, temperature) if config.sinkhorn else cosines
    ids = entities.entities.zip(batch).map(lambda side: _taken(*side).to(device))
    return ids.source[rows], ids.target[columns], scores.float()


def _potentials(
    vectors: Pair[Tensor],
    outside: Pair[Tensor] | None,
    config: FusionConfig,
    block_cells: int | None,
) -> Potentials:
    """What scales the products of a mini-batch; one matrix of it is in memory."""
    temperature, rounds = config.sinkhorn_temperature, config.sinkhorn_rounds
    if vectors.source.device.type == "cuda":
        source, target = vectors
        cells = min(block_cells or PRODUCT_CELLS, PRODUCT_CELLS)
        return sinkhorn_of_products(source, target, temperature, rounds, outside, cells)
    # A CPU takes a hundred times as long for numbers near float32's least, which abound here.
    wide = vectors.map(Tensor.double)
    return sinkhorn(block_product(wide.source, wide.target), temperature, rounds, outside)


def _taken(values: Tensor, places: Tensor) -> Tensor:
    return values.index_select(0, places.to(values.device))
