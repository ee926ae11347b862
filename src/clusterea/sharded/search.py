"""The nearest neighbors of all entities, in both directions, in shards of their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.engines import Engine, Ref
from clusterea.fusion.joined import JoinEdges, Partners, with_joined
from clusterea.fusion.undecided import Undecided
from clusterea.numerics.gpu_search import Compared, best_cells_on_gpu, suits
from clusterea.numerics.knn import (
    SPARE,
    BestCells,
    Nearest,
    Neighbors,
    OnStep,
    best_cells,
    none_found,
    rescored,
)
from clusterea.numerics.lists import Lists, list_centers, list_labels, num_lists, searched
from clusterea.numerics.near_groups import near_groups
from clusterea.numerics.rows import Rows
from clusterea.numerics.segments import offsets_of
from clusterea.numerics.ties import tie_vectors
from clusterea.sharded.shards import Shards, cut
from clusterea.types import IntArray, KnowledgeGraph, Pair


def search(
    engine: Engine,
    entities: Undecided,
    config: FusionConfig,
    device: torch.device,
    block_cells: int | None = None,
    progress: OnStep | None = None,
) -> tuple[Undecided, Pair[Shards], Pair[Shards]]:
    """Each entity's nearest of the other side: as many as candidates and hubness need.

    Returns:
        The entities, maybe in another order of rows; their vectors; their neighbors.
    """
    count = max(config.candidates, config.hubness_neighbors)
    if config.search == "approximate" and all(entities.num_rows):
        if device.type == "cpu":
            return _by_lists(engine, entities, count, config, progress)
        width = min(count + SPARE, *entities.num_rows)
        if engine.is_here and block_cells is None and suits(entities.num_rows, width, device):
            return _by_near_groups(engine, entities, count, config, progress)
    bounds = entities.num_rows.map(lambda size: cut(size, engine))
    vectors = _vectors(engine, entities, bounds)
    found = exact(
        engine,
        vectors,
        entities.keys,
        count,
        config.seed,
        device,
        block_cells=block_cells,
        progress=progress,
    )
    return entities, vectors, found


def whole(engine: Engine, found: Pair[Shards]) -> Nearest:
    """The neighbors of all rows in one piece."""

    def side(shards: Shards) -> Neighbors:
        parts = engine.get(shards.refs)
        return Neighbors(
            torch.cat([part.indices for part in parts]), torch.cat([part.values for part in parts])
        )

    return found.map(side)


def _vectors(engine: Engine, entities: Undecided, bounds: Pair[list[int]]) -> Pair[Shards]:
    """The vectors of both sides, read shard by shard."""

    def side(number: int) -> Shards:
        table, ids, cuts = list(zip(entities.tables, entities.entities, bounds, strict=True))[
            number
        ]
        if engine.is_here and table.device.type == "cuda":
            every = table.rows(ids)
            return Shards(cuts, [every[start:stop] for start, stop in pairwise(cuts)], every)
        refs = [engine.put(table.rows(ids[start:stop])) for start, stop in pairwise(cuts)]
        return Shards(cuts, refs)

    return Pair(side(0), side(1))


def exact(
    engine: Engine,
    vectors: Pair[Shards],
    keys: Pair[Tensor],
    k: int,
    seed: int,
    device: torch.device,
    *,
    spare: int = SPARE,
    block: Pair[int] | None = None,
    block_cells: int | None = None,
    progress: OnStep | None = None,
) -> Pair[Shards]:
    """Each row's nearest of the other side. All rows are compared; each pair of rows once.

    Args:
        engine: Runs the units.
        vectors: Rows of unit length, in shards.
        keys: (rows,) int64 of each side: they decide ties.
        k: How many.
        seed: Of the ties.
        device: Where to work.
        spare: How many cells of a row beyond k are scored in float64.
        block: Rows and columns of a block. Changes nothing but speed and memory.
        block_cells: The most cells of a block, if `block` is not given.
        progress: Called after each block, or after each shard.
    """
    if not all(vectors.map(lambda side: side.num_rows)):
        return vectors.map(lambda side: side.map(engine, _nothing_found, device))
    ties = tie_vectors(keys.map(lambda side: side.to(device)), seed)
    width = k + spare
    sizes = vectors.map(lambda side: side.num_rows)
    is_free = block is None and block_cells is None
    first = vectors.source.refs[0]
    is_there = isinstance(first, Tensor) and first.is_cuda
    if is_there and is_free and suits(sizes, width, device):
        return _on_gpu(vectors, width, ties, k, progress)
    held = engine.put(ties.target)
    of_targets: list[list[Ref]] = []
    chosen = []
    for number, (ref, (start, stop)) in enumerate(
        zip(vectors.source.refs, vectors.source.ranges(), strict=True)
    ):
        own, *others = engine.submit_parts(
            1 + len(vectors.target),
            _best_of_shard,
            ref,
            start,
            vectors.target.refs,
            vectors.target.bounds,
            ties.source[start:stop],
            held,
            width,
            device,
            block,
            block_cells,
            _within(progress, number, len(vectors.source)) if engine.is_here else None,
        )
        chosen.append(own)
        of_targets.append(others)
    if not engine.is_here:
        engine.get([engine.submit(_rows_of, ref) for ref in chosen], progress)
    source = [
        engine.submit(
            _rescored, ref, vectors.target.refs, best, Pair(ties.source[start:stop], held), k
        )
        for ref, best, (start, stop) in zip(
            vectors.source.refs, chosen, vectors.source.ranges(), strict=True
        )
    ]
    held = engine.put(ties.source)
    target = []
    for number, (ref, (start, stop)) in enumerate(
        zip(vectors.target.refs, vectors.target.ranges(), strict=True)
    ):
        best = engine.submit(_merged, width, *(each[number] for each in of_targets))
        near = Pair(ties.target[start:stop], held)
        target.append(engine.submit(_rescored, ref, vectors.source.refs, best, near, k))
    return Pair(Shards(vectors.source.bounds, source), Shards(vectors.target.bounds, target))


def _on_gpu(
    vectors: Pair[Shards],
    width: int,
    ties: Pair[Tensor],
    k: int,
    progress: OnStep | None,
    compared: Compared | None = None,
) -> Pair[Shards]:
    """The same on a GPU of this process, above floors; or the nearest of some other rows only."""
    sides = vectors.map(lambda side: Rows(side.parts))
    found = best_cells_on_gpu(sides, width, ties, compared=compared, progress=progress)

    def side(own: Shards, others: Rows, best: BestCells, near: Pair[Tensor]) -> Shards:
        refs = [
            rescored(
                rows,
                others,
                best.between(start, stop),
                Pair(near.source[start:stop], near.target),
                k,
            )
            for rows, (start, stop) in zip(own.refs, own.ranges(), strict=True)
        ]
        return Shards(own.bounds, refs)

    return Pair(
        side(vectors.source, sides.target, found.source, ties),
        side(vectors.target, sides.source, found.target, ties.swap()),
    )


def _nothing_found(rows: Tensor, device: torch.device) -> Neighbors:
    return none_found(len(rows), device)


def _best_of_shard(
    own: Tensor,
    start: int,
    others: Sequence[Tensor],
    bounds: Sequence[int],
    own_ties: Tensor,
    ties: Tensor,
    width: int,
    device: torch.device,
    block: Pair[int] | None,
    block_cells: int | None,
    progress: OnStep | None,
) -> tuple[BestCells, ...]:
    """A unit: the best cells of a shard of sources, and its best for each shard of targets."""
    found = best_cells(
        own,
        Rows(others),
        Pair(width, width),
        Pair(own_ties, ties),
        device=device,
        block=block,
        block_cells=block_cells,
        progress=progress,
    )
    found.target.columns.add_(start)
    return found.source, *(found.target.between(begin, end) for begin, end in pairwise(bounds))


def _rows_of(best: BestCells) -> int:
    """A unit with a small result, to wait for a large one where it is."""
    return len(best.columns)


def _merged(width: int, *parts: BestCells) -> BestCells:
    """A unit: the best of several shards."""
    return BestCells.merged(parts, width)


def _rescored(
    own: Tensor, others: Sequence[Tensor], best: BestCells, ties: Pair[Tensor], k: int
) -> Neighbors:
    """A unit: the nearest of the chosen rows."""
    return rescored(own, Rows(others), best, ties, k)


def _by_near_groups(
    engine: Engine, entities: Undecided, k: int, config: FusionConfig, progress: OnStep | None
) -> tuple[Undecided, Pair[Shards], Pair[Shards]]:
    """On a GPU, groups of rows are compared with the tiles of the other side that are near them.

    Rows are put into the order of lists, and near lists follow each other.
    """
    centers = list_centers(
        _sample(entities, config.search_sample),
        num_lists(sum(entities.num_rows)),
        config.search_rounds,
    )
    rough = list_centers(centers, num_lists(len(centers)), config.search_rounds)
    centers = centers[list_labels(centers, rough).argsort(stable=True)]
    labels = entities.tables.zip(entities.entities).map(
        lambda side: _labels(engine, side[0].rows, side[1], centers)
    )
    entities = entities.in_order(labels.map(lambda side: side.argsort(stable=True).cpu()))
    vectors = _vectors(engine, entities, entities.num_rows.map(lambda size: cut(size, engine)))
    whole_sides = vectors.map(lambda side: Rows(side.parts).whole())
    compared = near_groups(whole_sides, k, config.search_recall)
    ties = tie_vectors(entities.keys.map(lambda side: side.to(centers.device)), config.seed)
    found = _on_gpu(vectors, min(k + SPARE, *entities.num_rows), ties, k, progress, compared)
    return entities, vectors, found


def _by_lists(
    engine: Engine,
    entities: Undecided,
    k: int,
    config: FusionConfig,
    progress: OnStep | None,
) -> tuple[Undecided, Pair[Shards], Pair[Shards]]:
    """The rows of a list are compared with the nearest lists of the other side.

    Rows are put into the order of lists, so that a shard has whole lists. For CPUs only: a GPU
    computes all products in less time than the lists would take.
    """
    centers = engine.submit(
        list_centers,
        _sample(entities, config.search_sample),
        num_lists(sum(entities.num_rows)),
        config.search_rounds,
    )
    count = len(engine.get([centers])[0]) + 1  # the last list has rows of zeros
    labels = entities.tables.zip(entities.entities).map(
        lambda side: _labels(engine, side[0].rows, side[1], centers)
    )
    entities = entities.in_order(labels.map(lambda side: side.argsort(stable=True)))
    offsets = labels.map(lambda side: offsets_of(side.bincount(minlength=count)))
    firsts = offsets.map(lambda side: _list_bounds(side, engine))
    bounds = offsets.zip(firsts).map(lambda side: side[0][side[1]].tolist())
    vectors = _vectors(engine, entities, bounds)
    ties = tie_vectors(entities.keys, config.seed)
    lists = Pair(
        *(
            [
                engine.put(
                    Lists(
                        first,
                        own[first : last + 1] - own[first],
                        torch.arange(int(own[first]), int(own[last])),
                        vector[int(own[first]) : int(own[last])],
                    )
                )
                for first, last in pairwise(cuts)
            ]
            for own, cuts, vector in zip(offsets, firsts, ties, strict=True)
        )
    )
    total = len(vectors.source) + len(vectors.target)
    shared = centers, k, SPARE, config.search_compared

    def side(one: Pair[Shards], of_one: Pair[list[Ref]], before: int) -> list[Ref]:
        return [
            engine.submit(
                searched,
                ref,
                own,
                one.target.refs,
                of_one.target,
                *shared,
                _within(progress, before + number, total) if engine.is_here else None,
            )
            for number, (ref, own) in enumerate(zip(one.source.refs, of_one.source, strict=True))
        ]

    source = side(vectors, lists, 0)
    target = side(vectors.swap(), lists.swap(), len(source))
    if not engine.is_here:
        engine.get([engine.submit(_found_rows, ref) for ref in [*source, *target]], progress)
    return entities, vectors, Pair(Shards(bounds.source, source), Shards(bounds.target, target))


def _found_rows(found: Neighbors) -> int:
    """A unit with a small result, to wait for a large one where it is."""
    return len(found.indices)


def _within(progress: OnStep | None, number: int, total: int) -> OnStep | None:
    """Progress of one of several parts, in thousandths of all."""
    if progress is None:
        return None
    tell = progress
    return lambda done, of: tell(round(1000 * (number + done / max(of, 1)) / total), 1000)


def _sample(entities: Undecided, for_each: int) -> Tensor:
    """(n, dim): the vectors that centers are fitted to. Keys choose them, not ids."""
    most = for_each * num_lists(sum(entities.num_rows)) // 2
    drawn = entities.entities.zip(entities.keys).map(lambda side: side[0][side[1].argsort()[:most]])
    source, target = entities.tables.zip(drawn).map(lambda side: side[0].rows(side[1]))
    return torch.cat([source, target])


def _labels(engine: Engine, rows: Callable[[Tensor], Tensor], ids: Tensor, centers: Ref) -> Tensor:
    """(ids,): the list of each row of one side."""
    found = [
        engine.submit(list_labels, rows(ids[start:stop]), centers)
        for start, stop in pairwise(cut(len(ids), engine))
    ]
    return torch.cat(engine.get(found))


def _list_bounds(offsets: Tensor, engine: Engine) -> list[int]:
    """The first list of each shard, and the number of lists. No shard is empty."""
    wanted = torch.tensor(cut(int(offsets[-1]), engine)[1:-1], dtype=torch.int64)
    inner = torch.searchsorted(offsets, wanted)
    kept = torch.unique(offsets[inner])  # lists without rows begin where others do
    inside = kept[(kept > 0) & (kept < offsets[-1])]
    return [0, *torch.searchsorted(offsets, inside).tolist(), len(offsets) - 1]


def joined(
    engine: Engine,
    found: Pair[Shards],
    vectors: Pair[Shards],
    entities: Undecided,
    graphs: Pair[KnowledgeGraph],
    seeds: IntArray | Tensor,
    config: FusionConfig,
) -> Pair[Shards]:
    """The nearest of the neighbors that were found and of those that a join adds.

    Args:
        engine: Runs the units.
        found: By lists.
        vectors: Of the rows.
        entities: The rows.
        graphs: The graphs of all entities.
        seeds: (n, 2).
        config: `search_…`.
    """
    if not config.search_joined or not all(entities.num_rows):
        return found
    edges = graphs.zip(entities.entities).map(
        lambda side: engine.submit(JoinEdges.of, side[0], side[1])
    )
    nearest = found.map(lambda side: _nearest(engine, side))
    partners = engine.submit(
        Partners.of, nearest, entities.entities, seeds, edges, config.search_hub
    )
    ties = tie_vectors(entities.keys, config.seed)

    def side(one: int) -> Shards:
        both = Pair(found, vectors)
        own, near = (each if not one else each.swap() for each in both)
        order = edges if not one else edges.swap()
        own_ties, other_ties = ties if not one else ties.swap()
        held = engine.put(other_ties)
        known = partners if not one else engine.submit(Partners.swap, partners)
        refs = [
            engine.submit(
                with_joined,
                ref,
                start,
                rows,
                near.target.refs,
                Pair(own_ties[start:stop], held),
                order,
                known,
                config.search_joined,
            )
            for ref, rows, (start, stop) in zip(
                own.source.refs, near.source.refs, own.source.ranges(), strict=True
            )
        ]
        return Shards(own.source.bounds, refs)

    return Pair(side(0), side(1))


def _nearest(engine: Engine, found: Shards) -> tuple[Tensor, Tensor]:
    """(rows,) each: the nearest row of the other side, and its cosine."""
    parts = engine.get([engine.submit(_first, ref) for ref in found.refs])
    columns, values = zip(*parts, strict=True)
    return torch.cat(columns), torch.cat(values)


def _first(found: Neighbors) -> tuple[Tensor, Tensor]:
    """A unit: the nearest of each row."""
    return found.indices[:, 0].clone(), found.values[:, 0].clone()
