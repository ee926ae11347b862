"""`fuse`: the views of the similarity added up in one sparse matrix (SparseFusion, section 4.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.engines import Engine, InMemory
from clusterea.errors import InputError
from clusterea.fusion.content import content_weights, with_gains
from clusterea.fusion.csls import scaled
from clusterea.fusion.inputs import OnNamedStep, ViewInput
from clusterea.fusion.rejected import LOWEST, with_rejected_last
from clusterea.fusion.shortage import explained
from clusterea.fusion.trust import Trust
from clusterea.fusion.undecided import undecided
from clusterea.fusion.views import View, find_views
from clusterea.numerics.candidates import (
    candidate_cells,
    cell_positions,
    cells_of_entities,
    cells_of_neighbors,
    entity_offsets,
)
from clusterea.numerics.cells import add, in_memory, with_small_columns, without_pairs
from clusterea.numerics.knn import Neighbors
from clusterea.numerics.rows import Rows
from clusterea.sharded.search import joined, search, whole
from clusterea.sharded.shards import Shards, results_of
from clusterea.sharded.sinkhorn import sinkhorn
from clusterea.sharded.support import supported
from clusterea.types import (
    NO_ENTITIES,
    NO_LINKS,
    IntArray,
    KnowledgeGraph,
    Pair,
    Partition,
    Similarity,
)
from clusterea.types.similarity import column_type


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
    engine: Engine | None = None,
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
        engine: Runs the units; in this process and in memory if not given. The result does not
            depend on it, nor on the number of its shards.

    Raises:
        InputError: A view is unknown or lacks what it needs, there is nothing to compare, or memory
            ran out.
    """
    engine = engine or InMemory()
    device = device or [*encodings, *contents][0].source.device
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
        entities, vectors, found = search(engine, entities, config, device, block_cells, step)
        if config.search == "approximate" and graphs is not None and device.type == "cpu":
            found = joined(engine, found, vectors, entities, graphs, seeds, config)
        if trust is not None:
            widths = [each.source.shape[1] for each in contents]
            found = _each(engine, found, vectors, with_gains, widths, trust, unit)
        if len(rejected):
            wrong = torch.tensor(rejected)
            found = _with_rejected_last(engine, found, entities.entities, wrong)
        if any(each.in_mini_batches for each in views):
            read = vectors.map(lambda side: Rows(engine.get(side.parts)))
            entities = replace(entities, vectors=read)
            del read
        del vectors
        is_read = config.csls or any(each.make is not None for each in views)
        given = ViewInput(
            entities,
            whole(engine, found) if is_read else None,
            _outside(engine, found, config),
            partitions,
            seeds,
            graphs,
            config,
            device,
            block_cells,
            progress,
            partial(results_of, engine),
            engine.empty if device.type == "cpu" else None,
        )
        del entities  # only `given` should hold the vectors
        total: Similarity | None = None
        for index, view in enumerate(views):
            if not any(each.in_mini_batches for each in views[index:]):
                given = replace(given, entities=replace(given.entities, vectors=None))  # gigabytes
            make = view.make or partial(_all_candidates, engine, found, view)
            total = _sum(total, make(given), given)
        assert total is not None  # there is a view at least
        return scaled(without_pairs(total, rejected, given.empty), given)


def _sum(total: Similarity | None, more: Similarity, given: ViewInput) -> Similarity:
    more = with_small_columns(more)
    if total is None:
        return more
    return add(total, more, slab_cells=given.block_cells, empty=given.empty)


def _each(
    engine: Engine,
    found: Pair[Shards],
    vectors: Pair[Shards],
    unit: Callable[..., Neighbors],
    *arguments: Any,
) -> Pair[Shards]:
    """The results of a unit for the neighbors and vectors of each shard, and all other vectors."""

    def side(near: Shards, own: Shards, others: Shards) -> Shards:
        both = zip(near.refs, own.refs, strict=True)
        refs = [engine.submit(unit, *each, others.parts, *arguments) for each in both]
        return Shards(near.bounds, refs)

    return Pair(
        side(found.source, vectors.source, vectors.target),
        side(found.target, vectors.target, vectors.source),
    )


def _with_rejected_last(
    engine: Engine, found: Pair[Shards], entities: Pair[Tensor], rejected: Tensor
) -> Pair[Shards]:
    """The neighbors with rejected pairs last."""

    def side(near: Shards, own: Tensor, others: Tensor, wrong: Tensor) -> Shards:
        held = engine.put(others)
        refs = [
            engine.submit(with_rejected_last, ref, own[start:stop], held, wrong)
            for ref, (start, stop) in zip(near.refs, near.ranges(), strict=True)
        ]
        return Shards(near.bounds, refs)

    source, target = entities
    return Pair(
        side(found.source, source, target, rejected),
        side(found.target, target, source, rejected.flip(1)),
    )


def _outside(engine: Engine, found: Pair[Shards], config: FusionConfig) -> Pair[Tensor] | None:
    """(rows,) of each side: the similarity that stands for having no partner."""
    if config.outside == "none":
        return None
    count = 1 if config.outside == "best" else config.hubness_neighbors
    return found.map(
        lambda side: torch.cat(engine.get(side.map(engine, Neighbors.mean, count).refs))
    )


def _all_candidates(
    engine: Engine, found: Pair[Shards], view: View, given: ViewInput
) -> Similarity:
    """The views `sinkhorn` and `support`: the candidates of both directions, as one matrix."""
    config, entities = given.config, given.entities
    if config.hubness_neighbors > config.candidates:
        found = found.map(lambda side: side.map(engine, Neighbors.first, config.candidates))
    source, target = found
    pieces = [
        engine.submit_parts(len(source), cells_of_neighbors, ref, start, source.bounds)
        for ref, (start, _) in zip(target.refs, target.ranges(), strict=True)
    ]
    cells = Shards(
        source.bounds,
        [
            engine.submit(
                candidate_cells, ref, target.num_rows, LOWEST, [piece[number] for piece in pieces]
            )
            for number, ref in enumerate(source.refs)
        ],
    )
    del pieces
    plan = sinkhorn(
        engine,
        cells,
        target.bounds,
        config.sinkhorn_temperature,
        config.sinkhorn_rounds,
        given.outside,
    )
    del cells
    if view.needs_graphs:
        assert given.graphs is not None  # `find_views` has checked it
        plan = supported(
            engine,
            plan,
            target.bounds,
            entities.entities,
            given.graphs,
            given.seeds,
            config,
            given.device,
            given.step("support"),
        )
    return _by_entity(engine, plan, given)


def _by_entity(engine: Engine, plan: Shards, given: ViewInput) -> Similarity:
    """The cells of all shards as one matrix over entities."""
    entities, device = given.entities, given.device
    held = engine.put(entities.entities.target)
    parts = plan.map(engine, cells_of_entities, held)
    rows = entities.entities.source.to(device)
    counts = [engine.get([ref])[0].counts for ref in parts.refs]
    offsets = entity_offsets(rows, torch.cat(counts), entities.num_entities.source)
    size = int(offsets[-1])
    room = given.empty or in_memory(device)
    columns, values = (
        room([size], kind) for kind in (column_type(entities.num_entities.target), torch.float32)
    )
    for number, (start, stop) in enumerate(parts.ranges()):
        part = engine.get([parts.refs[number]])[0]
        parts.refs[number] = None  # frees it
        at = cell_positions(rows[start:stop], part.counts, offsets)
        columns[at], values[at] = part.columns.to(columns.dtype), part.values
    return Similarity(offsets, columns, values, entities.num_entities)
