"""Sinkhorn on the cells of a sparse matrix, in shards of its rows and of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from clusterea.engines import Engine
from clusterea.numerics.sparse_sinkhorn import (
    WIDEST,
    Sums,
    cells_of_columns,
    column_sums,
    first_potentials,
    new_potentials,
    outside_options,
    row_sums,
    value_range,
    with_potentials,
)
from clusterea.sharded.shards import Shards
from clusterea.types import Pair


def sinkhorn(
    engine: Engine,
    cells: Shards,
    column_bounds: Sequence[int],
    temperature: float,
    rounds: int,
    outside: Pair[Tensor] | None = None,
) -> Shards:
    """The cells scaled as `numerics.sinkhorn` scales a dense matrix in which absent cells are -inf.

    Each round is two sparse products with a vector: time and memory grow with the cells. With
    outside options, rows and columns sum to at most 1. Without them, columns that have a cell sum
    to 1, and rows may stay below: some patterns of cells have no matrix in which all sums are 1.

    Args:
        engine: Runs the units.
        cells: `Similarity` of some rows each, of any values.
        column_bounds: Where the shards of columns begin, and where the last one ends.
        temperature: T; the smaller, the nearer to a one-to-one assignment.
        rounds: How often rows and columns are scaled.
        outside: (rows,) and (columns,): the similarity that stands for having no partner.

    Raises:
        InputError: A similarity is NaN or infinite.
    """
    found = potentials(engine, cells, column_bounds, temperature, rounds, outside)
    return scaled(engine, cells, temperature, found)


def scaled(engine: Engine, cells: Shards, temperature: float, found: Pair[Tensor] | None) -> Shards:
    """The cells scaled by potentials of all rows and columns; None if there are no cells."""
    if found is None:
        return cells
    others = engine.put(found.target)
    return Shards(
        cells.bounds,
        [
            engine.submit(with_potentials, ref, temperature, found.source[start:stop], others)
            for ref, (start, stop) in zip(cells.refs, cells.ranges(), strict=True)
        ],
    )


def potentials(
    engine: Engine,
    cells: Shards,
    column_bounds: Sequence[int],
    temperature: float,
    rounds: int,
    outside: Pair[Tensor] | None = None,
    begin: Pair[Tensor] | None = None,
) -> Pair[Tensor] | None:
    """(rows,) and (columns,) float64: log u and log v; None if there are no cells.

    Rounds start from `begin`, if given. For the other arguments see `sinkhorn`.
    """
    found = engine.get([engine.submit(value_range, ref, temperature) for ref in cells.refs])
    spans = [each for each in found if each is not None]
    if not spans:
        return begin  # options may be NaN: the mean of no neighbors
    sizes = Pair(cells.num_rows, column_bounds[-1])
    given: Pair[Tensor | None] = Pair(None, None) if outside is None else Pair(*outside)
    options = given.zip(sizes).map(lambda side: outside_options(*side, temperature))
    low, high = min(span[0] for span in spans), max(span[1] for span in spans)
    shift = high if outside is not None and high - low <= WIDEST else None
    rows = cells.map(engine, row_sums, temperature, shift)
    columns = _by_columns(engine, cells, column_bounds, temperature, shift)
    is_empty = Pair(rows, columns).map(
        lambda side: engine.put(torch.cat(engine.get(side.map(engine, Sums.is_empty).refs)))
    )
    device = engine.get([is_empty.source])[0].device
    start = begin or sizes.map(lambda size: first_potentials(size, temperature))
    by_shard = Pair(rows, columns).zip(options).map(lambda side: _parts(*side, device))
    source, target = Pair(rows, columns).zip(start).map(lambda side: _parts(*side, device))
    for _ in range(rounds):
        source = [
            engine.submit(new_potentials, sums, own, is_empty.target, target)
            for sums, own in zip(rows.refs, by_shard.source, strict=True)
        ]
        target = [
            engine.submit(new_potentials, sums, own, is_empty.source, source)
            for sums, own in zip(columns.refs, by_shard.target, strict=True)
        ]
    return Pair(torch.cat(engine.get(source)), torch.cat(engine.get(target)))


def _parts(shards: Shards, values: Tensor, device: torch.device) -> list[Tensor]:
    """The values of the rows of each shard."""
    return [values[start:stop].to(device) for start, stop in shards.ranges()]


def _by_columns(
    engine: Engine,
    cells: Shards,
    column_bounds: Sequence[int],
    temperature: float,
    shift: float | None,
) -> Shards:
    """The sums of each shard of columns."""
    bounds = list(column_bounds)
    pieces = [
        engine.submit_parts(len(bounds) - 1, cells_of_columns, ref, start, bounds)
        for ref, (start, _) in zip(cells.refs, cells.ranges(), strict=True)
    ]
    refs = [
        engine.submit(
            column_sums,
            end - begin,
            cells.num_rows,
            temperature,
            shift,
            *(piece[number] for piece in pieces),
        )
        for number, (begin, end) in enumerate(pairwise(bounds))
    ]
    return Shards(bounds, refs)
