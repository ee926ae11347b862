"""Operations on the cells of sparse similarities. Absent cells stay absent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import pairwise
from typing import TypeAlias

import torch
from torch import Tensor

from clusterea.numerics.block_sizes import fitting_size
from clusterea.numerics.knn import Nearest
from clusterea.numerics.lookup import find_cells
from clusterea.numerics.segments import lengths, offsets_of
from clusterea.numerics.ties import pair_hash
from clusterea.types import IntArray, Pair, Similarity
from clusterea.types.similarity import column_type

Entries: TypeAlias = tuple[Tensor, Tensor, Tensor]  # rows, columns and values
Empty: TypeAlias = Callable[[Sequence[int], torch.dtype], Tensor]  # makes room for a large result
CELL_BYTES = 64  # memory that an addition takes for each cell


def from_cells(
    rows: Tensor, columns: Tensor, values: Tensor, num_entities: Pair[int]
) -> Similarity:
    """The matrix of these cells. Cells of the same pair are added, in the order given."""
    order, firsts, keys = _distinct(rows, columns, num_entities)
    values = values.index_select(0, order)
    sums = values.index_select(0, firsts)
    # A pair has only a few cells. The second cell of every pair is added, then the third, and so
    # on. So sums are the same to the last bit on every device.
    counts = torch.diff(firsts, append=firsts.new_tensor([len(values)]))
    several = (counts > 1).nonzero().flatten()
    step = 1
    while several.numel():
        sums[several] += values[firsts[several] + step]
        step += 1
        several = several[counts[several] > step]
    return _from_sorted(keys, sums, num_entities)


def from_parts(parts: list[Entries], num_entities: Pair[int]) -> Similarity:
    """The matrix of several parts, no two of which share a row. Empties the list of parts.

    Parts are sorted one by one and written into the result, so that only one sorted part is in
    memory beside the parts and the result.
    """
    counts = sum(rows.bincount(minlength=num_entities.source) for rows, _, _ in parts)
    if not isinstance(counts, Tensor):
        raise ValueError("parts must be one or more. Got none.")
    offsets = offsets_of(counts)
    columns = offsets.new_empty(int(offsets[-1]))
    values = parts[0][2].new_empty(len(columns))
    while parts:
        rows, others, scores = parts.pop()
        order = (rows * max(num_entities.target, 1) + others).argsort()
        rows = rows[order]
        # The rank of a cell in its row is its position less that of the row's first cell.
        firsts = torch.searchsorted(rows, rows)
        positions = offsets[rows] + torch.arange(len(rows), device=rows.device) - firsts
        columns[positions], values[positions] = others[order], scores[order]
    return Similarity(offsets, columns, values, num_entities)


def add(
    *similarities: Similarity, slab_cells: int | None = None, empty: Empty | None = None
) -> Similarity:
    """The sum of the matrices. It has a cell wherever one of them has. See `by_slabs`."""
    first, *others = similarities
    for other in others:
        if other.num_entities != first.num_entities:
            raise ValueError(
                "similarities to add must be of the same entities. "
                f"Got {first!r} and {other!r} instead."
            )
        first = by_slabs(
            lambda _, *slabs: added(*slabs), first, other, slab_cells=slab_cells, empty=empty
        )
    return first


def added(*slabs: Similarity) -> Similarity:
    """The sum of small matrices."""
    return reduce(partial(_merged, adding=True), slabs)


def joined(one: Similarity, other: Similarity, slab_cells: int | None = None) -> Similarity:
    """The cells of both matrices; the value of the first where both have a cell."""
    return by_slabs(
        lambda _, *slabs: _merged(*slabs, adding=False), one, other, slab_cells=slab_cells
    )


def by_slabs(
    make: Callable[..., Similarity],
    first: Similarity,
    *others: Similarity,
    slab_cells: int | None = None,
    empty: Empty | None = None,
) -> Similarity:
    """A matrix that is made some rows at a time, in little memory beside the matrices.

    Args:
        make: Gives rows of the result, from their range and the same rows of each matrix. It gives
            no more cells than these have.
        first: Of the entities of the result. Columns and values have its types.
        others: More matrices.
        slab_cells: Cells of a slab: speed and memory, never the result.
        empty: Makes room for the cells; by default in memory.
    """
    if not first.num_entities.source:
        return first
    every, device = (first, *others), first.values.device
    cells = slab_cells or fitting_size("sums", device, CELL_BYTES)
    offsets = torch.stack([each.row_offsets for each in every]).sum(0)
    cuts = list(cuts_of_rows(offsets, cells))
    kinds = first.columns.dtype, first.values.dtype
    room = empty or in_memory(device)
    columns, values = (room([int(offsets[-1])], kind) for kind in kinds)
    counts, end = [], 0
    for begin, stop in cuts:
        slab = make(slice(begin, stop), *(some_rows(each, begin, stop) for each in every))
        counts.append(lengths(slab.row_offsets))
        own = slice(end, end := end + slab.num_cells)
        columns[own], values[own] = slab.columns, slab.values
    return Similarity(
        offsets_of(torch.cat(counts)),
        _first(columns, end),
        _first(values, end),
        first.num_entities,
    )


def in_memory(device: torch.device) -> Empty:
    """Makes room on a device."""
    return lambda shape, kind: torch.empty(*shape, dtype=kind, device=device)


def _first(room: Tensor, size: int) -> Tensor:
    """The part of the room that was used. On a CPU, the rest takes no memory."""
    return room[:size] if room.device.type == "cpu" else room[:size].clone()


def row_slabs(similarity: Similarity, slab_cells: int) -> Iterator[tuple[slice, Similarity]]:
    """All rows in slabs of about `slab_cells` cells: the range of rows, and their matrix."""
    for begin, end in cuts_of_rows(similarity.row_offsets, slab_cells):
        yield slice(begin, end), some_rows(similarity, begin, end)


def cuts_of_rows(row_offsets: Tensor, slab_cells: int) -> Iterator[tuple[int, int]]:
    """Where slabs of whole rows begin and end. A single row may exceed `slab_cells`."""
    last = len(row_offsets) - 1
    count = 1 + int(row_offsets[-1]) // slab_cells
    aims = slab_cells * torch.arange(1, count, device=row_offsets.device)
    cuts = {0, *torch.searchsorted(row_offsets, aims).tolist(), last}
    return pairwise(sorted(cuts))


def some_rows(
    similarity: Similarity, begin: int, end: int, device: torch.device | None = None
) -> Similarity:
    """The rows from `begin` to `end` as a matrix of their own, with columns of 64 bits.

    It is on `device`, by default on that of the similarity.
    """
    offsets = similarity.row_offsets[begin : end + 1]
    cells = slice(int(offsets[0]), int(offsets[-1]))
    to = device or similarity.values.device
    return Similarity(
        (offsets - offsets[0]).to(to),
        similarity.columns[cells].to(to).long(),
        similarity.values[cells].to(to),
        Pair(end - begin, similarity.num_entities.target),
    )


def _merged(one: Similarity, other: Similarity, *, adding: bool) -> Similarity:
    """Merges two sorted lists of cells, in half the memory that sorting both would take."""
    kept, came = _keys(one), _keys(other)
    slots = torch.searchsorted(kept, came)
    is_new = torch.ones_like(slots, dtype=torch.bool)
    if kept.numel():
        is_new = kept[slots.clamp(max=kept.numel() - 1)] != came
    values = one.values.clone()
    if adding:
        values[slots[~is_new]] += other.values[~is_new]
    added, new_values = came[is_new], other.values[is_new]
    # The position of a new cell is the number of old and new cells before it.
    positions = slots[is_new] + torch.arange(added.numel(), device=added.device)
    del slots, came, is_new
    is_old = torch.ones(kept.numel() + added.numel(), dtype=torch.bool, device=kept.device)
    is_old[positions] = False
    keys = kept.new_empty(is_old.numel())
    keys[is_old], keys[positions] = kept, added
    sums = values.new_empty(is_old.numel())
    sums[is_old], sums[positions] = values, new_values
    return _from_sorted(keys, sums, one.num_entities)


def union_of_directions(
    nearest: Nearest,
    *,
    entities: Pair[Tensor] | None = None,
    num_entities: Pair[int] | None = None,
    twice: bool = True,
) -> Similarity:
    """The neighbors of both directions as one matrix.

    Args:
        nearest: From `knn.nearest`.
        entities: The entity of each row of the search, if not 0, 1, …
        num_entities: How many entities there are; goes with `entities`.
        twice: Whether a pair found from both sides counts twice, as in the paper (section 4.4).
    """
    sizes = num_entities or nearest.map(lambda neighbors: len(neighbors.indices))

    def view(rows: Tensor, columns: Tensor, values: Tensor) -> Similarity:
        if entities is not None:
            rows = entities.source.to(rows.device)[rows.flatten()]
            columns = entities.target.to(columns.device)[columns.flatten()]
        return from_parts([(rows.flatten(), columns.flatten(), values.flatten())], sizes)

    own = nearest.map(lambda neighbors: _row_numbers(neighbors.indices))
    source = view(own.source, nearest.source.indices, nearest.source.values)
    target = view(nearest.target.indices, own.target, nearest.target.values)
    return add(source, target) if twice else joined(source, target)


def sparse_csls(
    similarity: Similarity, row_means: Tensor, column_means: Tensor, empty: Empty | None = None
) -> Similarity:
    """Sp-CSLS (section 4.4): each value v becomes 2 v - mean of its row - mean of its column."""

    def shifted(rows: slice, slab: Similarity) -> Similarity:
        shift = row_means[rows][slab.rows()] + column_means[slab.columns]
        return replace(slab, values=2 * slab.values - shift)

    return by_slabs(shifted, similarity, empty=empty)


def min_max(similarity: Similarity, empty: Empty | None = None) -> Similarity:
    """The similarity with its values scaled to [0, 1]; 1 if all are equal.

    `empty` makes room for the values; by default in memory.
    """
    if not similarity.num_cells:
        return similarity
    low, high = similarity.values.aminmax()
    room = empty or in_memory(low.device)
    scaled = room([similarity.num_cells], low.dtype)
    step = fitting_size("sums", low.device, CELL_BYTES)
    for start in range(0, len(scaled), step):
        part = similarity.values[start : start + step]
        scaled[start : start + step] = (part - low) / (high - low) if bool(high > low) else 1
    return replace(similarity, values=scaled)


def with_small_columns(similarity: Similarity) -> Similarity:
    """The similarity with columns of 32 bits, if they fit."""
    kind = column_type(similarity.num_entities.target)
    if similarity.columns.dtype == kind:
        return similarity
    return replace(similarity, columns=similarity.columns.to(kind))


def open_entities(similarity: Similarity, rows: Tensor, columns: Tensor) -> Pair[Tensor]:
    """(entities,) bool of each side: false for these rows and columns."""
    device, sizes = similarity.values.device, similarity.num_entities
    is_open = sizes.map(lambda size: torch.ones(size, dtype=torch.bool, device=device))
    is_open.source[rows.to(device)] = False
    is_open.target[columns.to(device)] = False
    return is_open


def opened(is_open: Pair[Tensor], rows: slice, slab: Similarity) -> Similarity:
    """Some rows with only the cells whose row and column are open."""
    kept = is_open.source[rows][slab.rows()] & is_open.target[slab.columns]
    return slab if bool(kept.all()) else masked(slab, kept)


def without_pairs(
    similarity: Similarity, pairs: IntArray, empty: Empty | None = None
) -> Similarity:
    """The similarity without the cells of these (n, 2) pairs."""
    if not len(pairs):
        return similarity
    wrong = torch.tensor(pairs, device=similarity.values.device)

    def others(rows: slice, slab: Similarity) -> Similarity:
        own = wrong[(wrong[:, 0] >= rows.start) & (wrong[:, 0] < rows.stop)]
        at = find_cells(slab, own[:, 0] - rows.start, own[:, 1])
        kept = torch.ones_like(slab.values, dtype=torch.bool)
        kept[at[at >= 0]] = False
        return masked(slab, kept)

    return by_slabs(others, similarity, empty=empty)


def masked(similarity: Similarity, kept: Tensor) -> Similarity:
    """The similarity with only the cells where `kept`, (cells,) bool, is true."""
    counts = similarity.rows()[kept].bincount(minlength=similarity.num_entities.source)
    return Similarity(
        offsets_of(counts),
        similarity.columns[kept],
        similarity.values[kept],
        similarity.num_entities,
    )


def row_order(similarity: Similarity, ties: Pair[Tensor], seed: int) -> Tensor:
    """(cells,): the order by row, then by descending value, then by descending `pair_hash`."""
    rows = similarity.rows()
    keys, order = ((rows << 32) - _levels(similarity.values)).sort(stable=True)
    equal = keys[1:] == keys[:-1]
    edge = equal.new_zeros(1)
    tied = (torch.cat([equal, edge]) | torch.cat([edge, equal])).nonzero().flatten()
    cells = order[tied]
    hashes = pair_hash(ties.source[rows[cells]], ties.target[similarity.columns[cells]], seed)
    by_hash = hashes.argsort(descending=True)
    order[tied] = cells[by_hash[keys[tied][by_hash].argsort(stable=True)]]
    return order


def _levels(values: Tensor) -> Tensor:
    """(cells,) int64: 32-bit integers that sort like the values."""
    if values.dtype == torch.float64:
        levels: Tensor = torch.unique(values, return_inverse=True)[1]
        return levels
    bits = (values.float() + 0.0).view(torch.int32)  # the sum turns -0.0 into 0.0
    return torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits).long()


def _distinct(
    rows: Tensor, columns: Tensor, num_entities: Pair[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """The order of cells by pair, where each pair starts in it, and the pairs: row · n + column."""
    keys, order = (rows * num_entities.target + columns).sort(stable=True)
    new = torch.cat([keys.new_ones(min(1, len(keys)), dtype=torch.bool), keys[1:] != keys[:-1]])
    firsts = new.nonzero().flatten()
    return order, firsts, keys[firsts]


def _from_sorted(keys: Tensor, values: Tensor, num_entities: Pair[int]) -> Similarity:
    width = max(num_entities.target, 1)
    rows = keys // width
    offsets = offsets_of(rows.bincount(minlength=num_entities.source))
    return Similarity(offsets, keys - rows * width, values, num_entities)


def _keys(similarity: Similarity) -> Tensor:
    """(cells,) int64: row · n + column, ascending."""
    return similarity.rows() * max(similarity.num_entities.target, 1) + similarity.columns


def _row_numbers(matrix: Tensor) -> Tensor:
    """(rows · columns,): the row of each element."""
    rows, columns = matrix.shape
    return torch.arange(rows, device=matrix.device).repeat_interleave(columns)
