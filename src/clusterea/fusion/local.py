"""The views `local` and `local-cosine`: similarities within mini-batches (section 4.4)."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import TypeAlias

import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.fusion.inputs import ViewInput
from clusterea.numerics.blocks import best_of_block, block_product
from clusterea.numerics.cells import Entries, add, from_parts
from clusterea.numerics.dots import pair_dots
from clusterea.numerics.prefetch import prefetch
from clusterea.numerics.sinkhorn import (
    Potentials,
    sinkhorn,
    sinkhorn_of_products,
    values,
)
from clusterea.types import Pair, Partition, Similarity

AHEAD = 1  # mini-batches whose rows wait on a GPU; another one's are being read
Arguments: TypeAlias = tuple[
    Pair[Tensor], Pair[Tensor], Pair[Tensor], Pair[Tensor] | None, FusionConfig, bool, int | None
]


def local(given: ViewInput) -> Similarity:
    """The mini-batches of all samplers, each normalized by Sinkhorn: M_L of the paper."""
    return _of_all_samplers(given, normalize=True)


def local_cosine(given: ViewInput) -> Similarity:
    """The same without Sinkhorn: the cosines, as in the paper's ablation."""
    return _of_all_samplers(given, normalize=False)


def _of_all_samplers(given: ViewInput, *, normalize: bool) -> Similarity:
    """The sum over the samplers' partitions, made one after the other to save memory."""
    total: Similarity | None = None
    for index, partition in enumerate(given.partitions):
        what = f"mini-batches of sampler {index + 1} of {len(given.partitions)}"
        more = of_partition(given, partition, what, normalize=normalize)
        total = more if total is None else add(total, more, slab_cells=given.block_cells)
    assert total is not None  # `fuse` leaves the view out where there are no partitions
    return total


def of_partition(
    given: ViewInput, partition: Partition, what: str, *, normalize: bool = True
) -> Similarity:
    """The best cells of each row and of each column, in every mini-batch.

    In one process, only one mini-batch's matrix is in memory at a time. A cell's value is computed
    again from the exact cosine and the potentials, so that entities with equal vectors have equal
    values.

    Args:
        given: The entities and settings.
        partition: Which mini-batch each entity is in.
        what: The name of this part of the work, for `given.progress`.
        normalize: Whether Sinkhorn normalizes each mini-batch.
    """
    of_rows = Partition(
        partition.labels.zip(given.entities.entities).map(lambda side: side[0].cpu()[side[1]]),
        partition.num_batches,
    )
    nothing = torch.empty(0, dtype=torch.int64, device=given.device)
    parts: list[Entries] = [(nothing, nothing, nothing.float())]
    step = given.step(what) or (lambda *_: None)
    batches = [batch for batch in of_rows.mini_batches() if all(len(side) for side in batch)]
    done = partition.num_batches - len(batches)  # those without rows of both sides
    for number in range(done):
        step(number + 1, partition.num_batches)
    arguments = (_arguments(given, batch, normalize) for batch in batches)
    # If a step fails, the thread that reads ends too.
    with closing(_prefetched(arguments, given.device)) as ahead:
        for found in given.each(batch_cells, ahead):
            parts.append(found)
            done += 1
            step(done, partition.num_batches)
    return from_parts(parts, given.entities.num_entities)


def _prefetched(
    arguments: Generator[Arguments, None, None], device: torch.device
) -> Generator[Arguments, None, None]:
    """The same; for a GPU, the next rows are read on the host while it works."""
    if device.type != "cuda":
        return arguments
    return prefetch(arguments, device, _tensors, ahead=AHEAD)


def _arguments(given: ViewInput, batch: Pair[Tensor], normalize: bool) -> Arguments:
    """What `batch_cells` takes, for the rows of one mini-batch."""
    entities = given.entities

    def taken(values: Pair[Tensor]) -> Pair[Tensor]:
        return values.zip(batch).map(
            lambda side: side[0].index_select(0, side[1].to(side[0].device)).to(given.device)
        )

    assert entities.vectors is not None  # `in_mini_batches`
    vectors = entities.vectors.zip(batch).map(
        lambda side: side[0].take(side[1].to(side[0].device)).to(given.device)
    )
    outside = given.outside and taken(given.outside)
    ids, keys = taken(entities.entities), taken(entities.keys)
    return vectors, ids, keys, outside, given.config, normalize, given.block_cells


def _tensors(arguments: Arguments) -> list[Tensor]:
    return [side for each in arguments if isinstance(each, Pair) for side in each]


def batch_cells(
    vectors: Pair[Tensor],
    ids: Pair[Tensor],
    keys: Pair[Tensor],
    outside: Pair[Tensor] | None,
    config: FusionConfig,
    normalize: bool,
    block_cells: int | None,
) -> Entries:
    """Rows, columns and values of one mini-batch's best cells.

    Args:
        vectors: (rows, dim) of each side.
        ids: (rows,): their entities.
        keys: (rows,): they decide ties.
        outside: (rows,): the similarity that stands for having no partner.
        config: Sinkhorn's settings, and how many cells.
        normalize: Whether Sinkhorn normalizes the mini-batch.
        block_cells: Cells of a block worked on at a time.
    """
    temperature, device = config.sinkhorn_temperature, vectors.source.device
    potentials = Potentials(*(torch.zeros(len(side), device=device) for side in ids))
    if normalize:
        potentials = _potentials(vectors, outside, config, block_cells)
    shifts = Pair(potentials.source, potentials.target).map(lambda each: each * temperature)
    rows, columns = best_of_block(
        vectors, shifts, config.candidates, keys, config.seed, block_cells
    )
    cosines = pair_dots(vectors.source, vectors.target, rows, columns)
    scores = values(cosines, rows, columns, potentials, temperature) if normalize else cosines
    return ids.source[rows], ids.target[columns], scores.float()


def _potentials(
    vectors: Pair[Tensor],
    outside: Pair[Tensor] | None,
    config: FusionConfig,
    block_cells: int | None,
) -> Potentials:
    """The factors with which Sinkhorn scales a mini-batch; one matrix of it is in memory."""
    temperature, rounds = config.sinkhorn_temperature, config.sinkhorn_rounds
    if vectors.source.device.type == "cuda":
        source, target = vectors
        return sinkhorn_of_products(source, target, temperature, rounds, outside, block_cells)
    # Denormal numbers, which are frequent here, make a CPU a hundred times slower.
    wide = vectors.map(Tensor.double)
    return sinkhorn(block_product(wide.source, wide.target), temperature, rounds, outside)
