"""`fuse`: local and global similarities in one sparse matrix (SparseFusion, section 4.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.errors import InputError
from clusterea.fusion.mini_batches import mini_batch_view
from clusterea.fusion.neighbors import neighbors_view, normalized_view, search
from clusterea.fusion.retry import explained, with_smaller_blocks
from clusterea.fusion.support import supported
from clusterea.fusion.undecided import Undecided, undecided
from clusterea.numerics.cells import add, min_max, sparse_csls
from clusterea.numerics.knn import Nearest
from clusterea.types import NO_ENTITIES, IntArray, KnowledgeGraph, Pair, Partition, Similarity

Value = TypeVar("Value")
Progress = Callable[[str, int, int], None]  # what is being done, how far, of how much


@torch.no_grad()
def fuse(
    encodings: Sequence[Pair[Tensor]],
    partitions: Sequence[Partition],
    seeds: IntArray | Tensor,
    keys: Pair[IntArray] | Pair[Tensor],
    config: FusionConfig,
    *,
    shares: Sequence[float] | None = None,
    of_source: Tensor | None = None,
    graphs: Pair[KnowledgeGraph] | None = None,
    structural: Pair[IntArray] = NO_ENTITIES,
    device: torch.device | None = None,
    block_cells: int | None = None,
    progress: Progress | None = None,
) -> Similarity:
    """M_F = Sp-CSLS(M_L + M_N + M_G), in [0, 1], over every entity that is still to be linked.

    M_L is the sum of the partitions' Sinkhorn-normalized mini-batches, M_G the Sp-CSLS of the
    nearest neighbours both ways. M_N, which the paper does not have, is Sinkhorn's normalization of
    all nearest neighbours at once, and may be `supported` by what is around each pair.

    Args:
        encodings: (entities, dim) of each side, rows of unit length: one pair for each encoder.
            What is fused are the means of their cosines.
        partitions: One for each sampler.
        seeds: (n, 2): their rows and columns are left out; to support they are partners.
        keys: (entities,) int64 of each side: what decides ties (`AlignmentTask.tie_keys`).
        config: What to compute.
        shares: What each encoder's cosines weigh, 1 in all; the same if not given.
        of_source: (source entities, encoders): what they weigh in a row, if not the same in all.
        graphs: Whose entities they are: `support_rounds` need them.
        structural: Entities of each side that are never linked; left out like those of seeds.
        device: Where; that of the embeddings if not given.
        block_cells: Of the blocks worked on at a time: speed and memory, never the result. If not
            given, as many as is usual, and fewer where these don't fit.
        progress: Called now and then.
    """
    device = device or encodings[0].source.device
    if config.global_sinkhorn and config.support_rounds and graphs is None:
        raise InputError("support_rounds must be 0 where no graphs are given, only embeddings.")

    def made(part: Callable[[int | None], Value]) -> Value:
        return part(block_cells) if block_cells else with_smaller_blocks(part, device)

    with explained(device):
        entities = undecided(
            encodings, seeds, keys, config.seed, device, shares, of_source, structural
        )
        step = _named(progress, "nearest neighbours")
        found = made(lambda cells: search(entities, config, device, cells, step))
        options = _outside(found, config)
        total = _Total(made)
        for index, partition in enumerate(partitions):
            step = _named(progress, f"mini-batches of sampler {index + 1} of {len(partitions)}")
            local = (entities, partition, options, config, device, step)
            total.add(made(partial(mini_batch_view, *local)))
            del local  # and with it, at last, the vectors
        entities = entities.without_vectors()  # gigabytes that only mini-batches need
        if config.global_sinkhorn:
            step = _named(progress, "support")
            total.add(_normalized(entities, found, options, seeds, config, graphs, step))
        if config.global_similarity or not (partitions or config.global_sinkhorn):
            total.add(_shifted(neighbors_view(entities, found, config), entities, found, config))
        return _shifted(total.taken(), entities, found, config)


class _Total:
    """A sum of views that holds no view longer than it must: each has gigabytes."""

    def __init__(self, made: Callable[[Callable[[int | None], Similarity]], Similarity]) -> None:
        self._made = made
        self._sum: Similarity | None = None

    def add(self, view: Similarity) -> None:
        before = self._sum
        if before is None:
            self._sum = view
        else:
            self._sum = self._made(lambda cells: add(before, view, slab_cells=cells))

    def taken(self) -> Similarity:
        """The sum, which is then no longer held here."""
        if self._sum is None:
            raise ValueError("there must be a view.")
        total, self._sum = self._sum, None
        return total


def _shifted(
    similarity: Similarity, entities: Undecided, found: Nearest, config: FusionConfig
) -> Similarity:
    """Sp-CSLS of the matrix, or else just the matrix in [0, 1]."""
    if config.csls:
        means = found.map(lambda side: side.mean(config.hubness_neighbors))
        rows, columns = (
            _by_entity(*side) for side in entities.entities.zip(means).zip(entities.num_entities)
        )
        similarity = sparse_csls(similarity, rows, columns)
    return min_max(similarity)


def _by_entity(at_places: tuple[Tensor, Tensor], count: int) -> Tensor:
    """(entities,): the values at places, and zero for who has none."""
    places, values = at_places
    result = values.new_zeros(count)
    result[places.to(values.device)] = values
    return result


def _outside(found: Nearest, config: FusionConfig) -> Pair[Tensor] | None:
    """(places,) of each side: the similarity at which an entity would rather stay alone."""
    if config.outside == "none":
        return None
    count = 1 if config.outside == "best" else config.hubness_neighbors
    return found.map(lambda side: side.mean(count))


def _normalized(
    entities: Undecided,
    found: Nearest,
    options: Pair[Tensor] | None,
    seeds: IntArray | Tensor,
    config: FusionConfig,
    graphs: Pair[KnowledgeGraph] | None,
    step: Callable[[int, int], None] | None,
) -> Similarity:
    """M_N, supported where there are graphs."""
    plan = normalized_view(found, options, config)
    if graphs is not None:
        plan = supported(plan, entities.entities, graphs, seeds, config, step)
    return entities.by_entity(plan)


def _named(progress: Progress | None, what: str) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, of: progress(what, done, of)
