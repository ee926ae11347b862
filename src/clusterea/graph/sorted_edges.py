"""`edge_blocks`: the edges of a graph in order, a block of entities at a time.

A triple is an edge of both its ends. On a CPU, sorting them takes 16 bytes a triple; on a GPU, all
takes less than `GPU_BYTES`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from clusterea.numerics.block_sizes import BLOCK_SIZES
from clusterea.types import IntArray

GPU_BYTES = 200  # for each triple of a graph
KEY_BITS = 62  # of the integer that an edge is sorted by


@dataclass(frozen=True, slots=True, eq=False)
class EdgeBlock:
    """All edges of some consecutive entities, sorted by entity, by other end, and by label."""

    start: int  # the first of these entities
    stop: int
    owners: Tensor  # (edges,) int64: the entity of each edge
    others: Tensor  # (edges,) int64: the entity at the other end
    labels: Tensor  # (edges,) int64
    is_new: Tensor  # (edges,) bool: no edge before it has the same ends and label
    is_new_pair: Tensor  # (edges,) bool: no edge before it has the same ends

    def counts(self, owners: Tensor) -> Tensor:
        """(entities,): how often each entity of the block is one of these."""
        return (owners - self.start).bincount(minlength=self.stop - self.start)

    def by_label(
        self, labels: Tensor, num_labels: int, chosen: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The distinct labels on each entity's edges.

        Args:
            labels: (edges,): of the edges.
            num_labels: How many there are.
            chosen: Only these edges.

        Returns:
            (entities,) how many there are; (…,) the labels, ascending; (…,) edges with each.
        """
        bits = _bits(num_labels)
        keys = (self.owners - self.start << bits) | labels
        keys = sorted_in_place(keys if chosen is None else keys[chosen])
        distinct, counts = torch.unique_consecutive(keys, return_counts=True)
        owned = (distinct >> bits).bincount(minlength=self.stop - self.start)
        return owned, distinct & (1 << bits) - 1, counts


class Column:
    """Numbers that are made in parts, in a small type. Joining them frees the parts."""

    def __init__(self) -> None:
        self._parts: list[Tensor] = []

    def add(self, part: Tensor, kind: torch.dtype) -> None:
        self._parts.append(part.to(kind))

    def joined(self, kind: torch.dtype, device: torch.device) -> Tensor:
        whole = torch.cat([torch.empty(0, dtype=kind, device=device), *self._parts])
        self._parts.clear()
        return whole


def edge_blocks(
    ends: tuple[IntArray, IntArray],
    relations: IntArray,
    num_entities: int,
    num_relations: int,
    device: torch.device,
) -> Iterator[EdgeBlock]:
    """The edges of all entities that have any.

    Args:
        ends: (triples,) each: a triple is an edge of the first one, labeled with its relation, and
            of the second one, labeled with relation + number of relations.
        relations: (triples,).
        num_entities: Of the graph.
        num_relations: Of the graph.
        device: Where to sort; the blocks are there.
    """
    entity_bits, label_bits = _bits(num_entities), _bits(2 * num_relations)
    bits = entity_bits + label_bits
    # Edges of so many entities at a time fit the integer.
    step = 1 << max(0, KEY_BITS - bits)
    for first in range(0, num_entities, step):
        entities = range(first, min(first + step, num_entities))
        arguments = ends, relations, num_relations, entities, (entity_bits, label_bits)
        if device.type == "cpu":
            ordered = sorted_in_place(torch.from_numpy(_keys(*arguments)))
        else:
            ordered = sorted_in_place(keys_on(device, *arguments))
        for start, stop in _runs(ordered, bits):
            some = ordered[start:stop]
            pairs = some >> label_bits
            owners = (pairs >> entity_bits) + first
            yield EdgeBlock(
                int(owners[0]),
                int(owners[-1]) + 1,
                owners,
                pairs & (1 << entity_bits) - 1,
                some & (1 << label_bits) - 1,
                _changes(some),
                _changes(pairs),
            )
        del ordered


def sorted_in_place(values: Tensor) -> Tensor:
    """The values, ascending; on a CPU in their own memory."""
    if values.device.type != "cpu":
        return values.sort().values
    values.numpy().sort()
    return values


def _bits(count: int) -> int:
    """Of the numbers below `count`."""
    return max(count - 1, 0).bit_length()


def _keys(
    ends: tuple[IntArray, IntArray],
    relations: IntArray,
    num_relations: int,
    entities: range,
    bits: tuple[int, int],
) -> IntArray:
    """(edges,): owner, other end and label of each edge of these entities, as one integer.

    Owners are counted from the first of these entities.
    """
    is_own = [(end >= entities.start) & (end < entities.stop) for end in ends]
    chosen = [slice(None) if each.all() else np.flatnonzero(each) for each in is_own]
    sizes = [int(each.sum()) for each in is_own]
    del is_own
    keys = np.empty(sum(sizes), dtype=np.int64)
    for number, part in enumerate(np.split(keys, sizes[:1])):  # views
        own, other, some = ends[number], ends[1 - number], chosen[number]
        np.subtract(own[some], entities.start, out=part)
        np.left_shift(part, bits[0], out=part)
        np.add(part, other[some], out=part)
        np.left_shift(part, bits[1], out=part)
        np.add(part, relations[some], out=part)
        np.add(part, number * num_relations, out=part)
    return keys


def keys_on(
    device: torch.device,
    ends: tuple[IntArray, IntArray],
    relations: IntArray,
    num_relations: int,
    entities: range,
    bits: tuple[int, int],
) -> Tensor:
    """What `_keys` returns, computed on a device: faster on a GPU, in more memory."""

    def there(numbers: IntArray) -> Tensor:
        small = numbers.max(initial=0) < 2**31  # half the bytes to copy
        return torch.from_numpy(numbers.astype(np.int32 if small else np.int64)).to(device)

    first, second, labels = there(ends[0]), there(ends[1]), there(relations)
    keys = []
    for own, other, shift in ((first, second, 0), (second, first, num_relations)):
        key = own.long() - entities.start
        key = (key << bits[0] | other) << bits[1] | (labels + shift)
        is_whole = entities.start == 0 and bool((own < entities.stop).all())
        keys.append(key if is_whole else key[(own >= entities.start) & (own < entities.stop)])
    return torch.cat(keys)


def _runs(ordered: Tensor, bits: int) -> Iterator[tuple[int, int]]:
    """Where blocks of edges begin and end; an entity is in one block, which it may exceed."""
    most = BLOCK_SIZES["sorted edges"][ordered.device.type]
    start = 0
    while start < len(ordered):
        stop = len(ordered)
        if start + most < stop:
            owner = int(ordered[start + most]) >> bits
            stop = int(torch.searchsorted(ordered, owner << bits))
            if stop == start:
                stop = int(torch.searchsorted(ordered, owner + 1 << bits))
        yield start, stop
        start = stop


def _changes(rising: Tensor) -> Tensor:
    """True where a value differs from the one before it, and at the start."""
    first = torch.ones_like(rising, dtype=torch.bool)
    torch.ne(rising[1:], rising[:-1], out=first[1:])
    return first
