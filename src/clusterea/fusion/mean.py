"""`mean` of several similarities of the same entities, and `restored` pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from clusterea.numerics.cells import (
    Empty,
    added,
    by_slabs,
    from_cells,
    open_entities,
    opened,
    row_slabs,
)
from clusterea.types import IntArray, Similarity

SLAB_CELLS = 1 << 22
SURE = 0.5  # above it, structure is sure enough to overrule equal names


def mean(
    similarities: Sequence[Similarity],
    seeds: IntArray,
    empty: Empty | None = None,
) -> Similarity:
    """The mean, where an absent cell counts as 0.

    Args:
        similarities: One or more, each of which may have rows and columns of seeds.
        seeds: (n, 2): their rows and columns are left out.
        empty: Makes room for the cells; by default in memory.
    """
    first = similarities[0]
    known = torch.tensor(seeds, device=first.values.device)
    is_open = open_entities(first, known[:, 0], known[:, 1])

    def of_rows(rows: slice, *slabs: Similarity) -> Similarity:
        total = added(*(opened(is_open, rows, slab) for slab in slabs))
        return replace(total, values=total.values / len(slabs))

    return by_slabs(of_rows, *similarities, empty=empty)


def restored(similarity: Similarity, pairs: Tensor, empty: Empty | None = None) -> Similarity:
    """The similarity in which the entities of these pairs have no other candidates.

    A pair stays as it is if one of its entities has another candidate above `SURE`.

    Args:
        similarity: In [0, 1].
        pairs: (n, 2), one-to-one. The value of a pair that is put back becomes 1.
        empty: Makes room for the cells; by default in memory.
    """
    device = similarity.values.device
    source, target = pairs.to(device).T
    is_free = ~_have_rivals(similarity, source, target)
    source, target = source[is_free], target[is_free]
    is_open = open_entities(similarity, source, target)
    ones = similarity.values.new_ones(len(source))
    put_back = from_cells(source, target, ones, similarity.num_entities)
    return by_slabs(
        lambda rows, slab, more: added(opened(is_open, rows, slab), more),
        similarity,
        put_back,
        empty=empty,
    )


def _have_rivals(similarity: Similarity, source: Tensor, target: Tensor) -> Tensor:
    """(pairs,) bool: whether an entity of a pair has another candidate above `SURE`."""
    partner = source.new_full((similarity.num_entities.source,), -1)
    partner[source] = target
    has_one = similarity.num_entities.map(
        lambda size: torch.zeros(size, dtype=torch.bool, device=source.device)
    )
    for rows, slab in row_slabs(similarity, SLAB_CELLS):
        own = slab.rows() + rows.start
        is_rival = (slab.values > SURE) & (partner[own] != slab.columns)
        has_one.source[own[is_rival]] = True
        has_one.target[slab.columns[is_rival]] = True
    return has_one.source[source] | has_one.target[target]
