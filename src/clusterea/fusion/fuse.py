"""`fuse`: the views of the similarity added up in one sparse matrix (SparseFusion, section 4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.errors import InputError
from clusterea.fusion.content import content_weights, with_gains
from clusterea.fusion.csls import scaled
from clusterea.fusion.inputs import OnNamedStep, ViewInput
from clusterea.fusion.joined import with_joined
from clusterea.fusion.neighbors import search
from clusterea.fusion.rejected import with_rejected_last
from clusterea.fusion.shortage import explained
from clusterea.fusion.trust import Trust
from clusterea.fusion.undecided import undecided
from clusterea.fusion.views import find_views
from clusterea.numerics.cells import add, without_pairs
from clusterea.numerics.knn import Nearest
from clusterea.types import (
    NO_ENTITIES,
    NO_LINKS,
    IntArray,
    KnowledgeGraph,
    Pair,
    Partition,
    Similarity,
)


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
    contents: Sequence[Pair[Tensor]] = (),
    trust: Trust | None = None,
    hidden: Pair[IntArray] = NO_ENTITIES,
    rejected: IntArray = NO_LINKS,
    device: torch.device | None = None,
    block_cells: int | None = None,
    progress: OnNamedStep | None = None,
) -> Similarity:
    """M_F, in [0, 1], over all entities that are still to be linked.

    It is the sum of the views that `config.views` names (`clusterea.fusion.VIEWS`), after Sp-CSLS
    where `config.csls` asks for it. The paper's is Sp-CSLS(M_L + M_G): views `local` and `global`.

    Args:
        encodings: (entities, dim) of each side, rows of unit length: one pair for each encoder.
            Their cosines are averaged.
        partitions: One for each sampler.
        seeds: (n, 2): known pairs. Their rows and columns are left out.
        keys: (entities,) int64 of each side: they decide ties (`AlignmentTask.tie_keys`).
        config: What to compute.
        shares: The weights of the encoders' cosines, which sum to 1; equal if not given.
        of_source: (source entities, encoders): weights for each row, if not the same in all.
        graphs: The graphs of the entities; the view `support` needs them.
        structural: Entities of each side that are never linked. They are left out too.
        contents: (entities, dim) of each side for each content encoder: names, features.
        trust: The gains of these encoders; they are ignored without it.
        hidden: Entities of each side whose names and features are taken as missing.
        rejected: (n, 2): pairs that are not the same. They have no cell.
        device: Where to work; that of the embeddings if not given.
        block_cells: Cells of the blocks worked on at a time: speed and memory, never the result.
        progress: Called after each step of the work.

    Raises:
        InputError: A view is unknown or lacks what it needs, there is nothing to compare, or memory
            ran out.
    """
    device = device or [*encodings, *contents][0].source.device
    config = config.on(device.type)
    unit = config.sinkhorn_temperature  # so that a gain is one of the kernel's logarithm
    if trust is None or not bool(trust.most.any()):
        contents, trust = (), None  # exactly what structure alone gives
        if not encodings:
            raise InputError(
                "the names or features tell nothing about which entities are the same, and no "
                "structure is compared. Add an encoder of structure, such as label-propagation."
            )
    weights = [] if trust is None else content_weights(trust, unit)
    views = find_views(
        config.views, has_mini_batches=bool(partitions), has_graphs=graphs is not None
    )

    with explained(device):
        entities = undecided(
            encodings,
            seeds,
            keys,
            config.seed,
            device,
            shares,
            of_source,
            structural,
            contents,
            weights,
            hidden,
        )
        step = None if progress is None else partial(progress, "nearest neighbors")
        found = search(entities, config, device, block_cells, step)
        if config.search == "approximate" and graphs is not None:
            found = with_joined(found, entities, graphs, seeds, config)
        if trust is not None:
            found = with_gains(found, entities, trust, unit)
        found = with_rejected_last(found, entities, rejected)
        given = ViewInput(
            entities,
            found,
            _outside(found, config),
            partitions,
            seeds,
            graphs,
            config,
            device,
            block_cells,
            progress,
        )
        del entities  # only `given` should hold the vectors
        total: Similarity | None = None
        for index, view in enumerate(views):
            if not any(each.in_mini_batches for each in views[index:]):
                given = replace(given, entities=given.entities.without_vectors())  # gigabytes
            total = _sum(total, view.make(given), block_cells)
        assert total is not None  # there is a view at least
        return scaled(without_pairs(total, rejected), given)


def _sum(total: Similarity | None, more: Similarity, block_cells: int | None) -> Similarity:
    return more if total is None else add(total, more, slab_cells=block_cells)


def _outside(found: Nearest, config: FusionConfig) -> Pair[Tensor] | None:
    """(rows,) of each side: the similarity that stands for having no partner."""
    if config.outside == "none":
        return None
    count = 1 if config.outside == "best" else config.hubness_neighbors
    return found.map(lambda side: side.mean(count))
