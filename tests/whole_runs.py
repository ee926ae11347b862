"""Sharded stages on values in one piece: cut them, run a stage, put the result together again.

If no engine is given, it is one of this process, with one shard.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.engines import Engine, InMemory
from clusterea.fusion.undecided import Undecided, VectorTable
from clusterea.numerics.knn import SPARE, Nearest, Neighbors, OnStep
from clusterea.sharded import search as search_module
from clusterea.sharded import sinkhorn as sinkhorn_module
from clusterea.sharded import support as support_module
from clusterea.sharded.search import exact, search, whole
from clusterea.sharded.shards import Shards, cut
from clusterea.types import IntArray, KnowledgeGraph, Pair, Similarity

# -- cuts ----------------------------------------------------------------------------------------


def cut_rows(rows: Tensor, engine: Engine) -> Shards:
    bounds = cut(len(rows), engine)
    return Shards(bounds, [engine.put(rows[start:stop]) for start, stop in pairwise(bounds)])


def cut_neighbors(found: Neighbors, engine: Engine) -> Shards:
    bounds = cut(len(found.indices), engine)
    return Shards(bounds, [engine.put(found.between(*each)) for each in pairwise(bounds)])


def cut_cells(cells: Similarity, engine: Engine) -> Shards:
    """Shards of rows; each has all columns."""
    bounds = cut(cells.num_entities.source, engine)
    if len(bounds) == 2:
        return Shards(bounds, [engine.put(cells)])
    refs = []
    for start, stop in pairwise(bounds):
        offsets = cells.row_offsets[start : stop + 1]
        some = slice(int(offsets[0]), int(offsets[-1]))
        sizes = Pair(stop - start, cells.num_entities.target)
        part = Similarity(offsets - offsets[0], cells.columns[some], cells.values[some], sizes)
        refs.append(engine.put(part))
    return Shards(bounds, refs)


def whole_cells(shards: Shards, engine: Engine) -> Similarity:
    parts = engine.get(shards.refs)
    if len(parts) == 1:
        only: Similarity = parts[0]
        return only
    counts = torch.cat([part.row_offsets.diff() for part in parts])
    return Similarity(
        torch.cat([counts.new_zeros(1), counts.cumsum(0)]),
        torch.cat([part.columns for part in parts]),
        torch.cat([part.values for part in parts]),
        Pair(shards.num_rows, parts[0].num_entities.target),
    )


def vectors_of(entities: Undecided) -> Pair[Tensor]:
    """(rows, dim) of each side."""
    read = entities.read().vectors
    assert read is not None
    return read.map(lambda side: side.whole())


# -- searches ------------------------------------------------------------------------------------


def nearest(
    source: Tensor,
    target: Tensor,
    k: int,
    keys: Pair[Tensor],
    seed: int,
    *,
    device: torch.device | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> Nearest:
    """The exact search: `options` are those of `sharded.search.exact`."""
    engine, device = engine or InMemory(1), device or source.device
    vectors = Pair(source, target).map(lambda side: cut_rows(side, engine))
    return whole(engine, exact(engine, vectors, keys, k, seed, device, **options))


def nearest_approximate(
    source: Tensor,
    target: Tensor,
    k: int,
    keys: Pair[Tensor],
    seed: int,
    *,
    spare: int = SPARE,
    progress: OnStep | None = None,
    engine: Engine | None = None,
    **options: int,
) -> Nearest:
    """The search by lists: `options` are `compared`, `sample` and `rounds` of its settings."""
    named: dict[str, Any] = {f"search_{name}": value for name, value in options.items()}
    config = FusionConfig(
        search="approximate", candidates=k, hubness_neighbors=k, seed=seed, **named
    )
    sides = Pair(source, target)
    entities = Undecided(
        sides.map(lambda rows: torch.arange(len(rows))),
        keys,
        sides.map(lambda rows: VectorTable([rows], [1.0], rows.device)),
        sides.map(len),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_module, "SPARE", spare)
        return searched(entities, config, source.device, progress=progress, engine=engine)


def searched(
    entities: Undecided,
    config: FusionConfig,
    device: torch.device,
    block_cells: int | None = None,
    progress: OnStep | None = None,
    engine: Engine | None = None,
) -> Nearest:
    """The neighbors of these rows, in this order, also if the search orders them otherwise."""
    engine = engine or InMemory(1)
    after, _, shards = search(engine, entities, config, device, block_cells, progress)
    found = whole(engine, shards)
    old = entities.entities.zip(after.entities).map(lambda side: _places(*side))
    return Pair(
        _moved(found.source, old.source, old.target), _moved(found.target, old.target, old.source)
    )


def _places(before: Tensor, after: Tensor) -> Tensor:
    """(rows,): where the entities of `after` are in `before`."""
    row_of = torch.empty(int(before.max()) + 1 if len(before) else 0, dtype=torch.int64)
    row_of[before] = torch.arange(len(before))
    return row_of[after]


def _moved(found: Neighbors, own: Tensor, others: Tensor) -> Neighbors:
    """The neighbors of row i as those of row `own[i]`, with row j called `others[j]`."""
    indices, values = torch.empty_like(found.indices), torch.empty_like(found.values)
    device = indices.device
    indices[own.to(device)] = others.to(device)[found.indices]
    values[own.to(device)] = found.values
    return Neighbors(indices, values)


def joined(
    found: Nearest,
    entities: Undecided,
    graphs: Pair[KnowledgeGraph],
    seeds: IntArray | Tensor,
    config: FusionConfig,
    *,
    engine: Engine | None = None,
) -> Nearest:
    """What a join adds to the neighbors found."""
    engine = engine or InMemory(1)
    shards = found.map(lambda side: cut_neighbors(side, engine))
    vectors = vectors_of(entities).map(lambda side: cut_rows(side, engine))
    more = search_module.joined(engine, shards, vectors, entities, graphs, seeds, config)
    return whole(engine, more)


# -- cells ---------------------------------------------------------------------------------------


def sparse_sinkhorn(
    cells: Similarity,
    temperature: float,
    rounds: int,
    outside: Pair[Tensor] | None = None,
    *,
    engine: Engine | None = None,
) -> Similarity:
    engine = engine or InMemory(1)
    columns = cut(cells.num_entities.target, engine)
    shards = cut_cells(cells, engine)
    plan = sinkhorn_module.sinkhorn(engine, shards, columns, temperature, rounds, outside)
    return whole_cells(plan, engine)


def supported(
    plan: Similarity,
    entities: Pair[Tensor],
    graphs: Pair[KnowledgeGraph],
    seeds: IntArray | Tensor,
    config: FusionConfig,
    progress: OnStep | None = None,
    *,
    engine: Engine | None = None,
) -> Similarity:
    engine, device = engine or InMemory(1), plan.values.device
    columns = cut(plan.num_entities.target, engine)
    shards = cut_cells(plan, engine)
    found = support_module.supported(
        engine, shards, columns, entities, graphs, seeds, config, device, progress
    )
    return whole_cells(found, engine)
