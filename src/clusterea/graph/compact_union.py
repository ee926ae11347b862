"""`CompactUnion`: both knowledge graphs as one, without weights and in few bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clusterea.graph.sorted_edges import GPU_BYTES, Column, EdgeBlock, edge_blocks
from clusterea.numerics.block_sizes import available
from clusterea.numerics.index_types import index_type, number_type
from clusterea.numerics.segments import offsets_of, ranges
from clusterea.types import KnowledgeGraph, Pair

LOWEST = -(2**63)
SEVERAL = -1  # in place of the relation of an edge that has a set of several


@dataclass(frozen=True, slots=True, eq=False)
class CompactUnion:
    """What `UnionGraph` has without weights; see there.

    Integers are as small as the graph allows: with at most 32,767 sets an edge takes 6 bytes, and
    with as many relations an entity takes 2 bytes for each distinct relation on its edges.
    """

    offsets: Tensor  # (nodes + 1,)
    neighbors: Tensor  # (edges,)
    relation_sets: Tensor  # (edges,)
    set_offsets: Tensor  # (sets + 1,) int64
    set_relations: Tensor  # (…,) int64
    incident_offsets: Tensor  # (nodes + 1,)
    incident_relations: Tensor  # (…,)
    num_relations: int  # with inverses

    @property
    def num_nodes(self) -> int:
        return self.offsets.numel() - 1

    @classmethod
    def of(cls, graphs: Pair[KnowledgeGraph], device: torch.device | None = None) -> CompactUnion:
        """The union of both graphs, on the device; on the host if that is not given.

        It is the same on each device. If a GPU has too little memory to sort there, the CPU does.
        """
        device = torch.device("cpu") if device is None else device
        most = max(graph.num_triples for graph in graphs)
        free = available(device) if device.type == "cuda" else None
        if free is not None and most * GPU_BYTES > free / 2:
            return cls.of(graphs).to(device)
        nodes = sum(graph.num_entities for graph in graphs)
        relations = 2 * sum(graph.num_relations for graph in graphs)
        node, name = index_type(nodes), number_type(relations)
        degrees, incidence = (
            torch.zeros(nodes, dtype=torch.int64, device=device) for _ in range(2)
        )
        neighbors, singles, incident, sizes, members = (Column() for _ in range(5))
        for block, shift, labels in _blocks(graphs, device):
            own = slice(block.start + shift, block.stop + shift)
            starts = block.is_new_pair.nonzero().flatten()
            degrees[own] = block.counts(block.owners[starts])
            neighbors.add(block.others[starts] + shift, node)
            counts = torch.diff(starts, append=starts.new_tensor([len(block.owners)]))
            several = (counts > 1).nonzero().flatten()
            single = labels[starts]
            single[several] = SEVERAL
            singles.add(single, name)
            counts = counts[several]
            sizes.add(counts, torch.int64)
            members.add(labels[ranges(starts[several], counts)[1]], name)
            incidence[own], held, _ = block.by_label(labels, relations)
            incident.add(held, name)
        sets = _RelationSets.of(
            sizes.joined(torch.int64, device), members.joined(name, device), relations
        )
        of_edges = singles.joined(name, device).to(number_type(len(sets.offsets)))
        of_edges[of_edges == SEVERAL] = sets.numbers.to(of_edges.dtype)
        to, held = neighbors.joined(node, device), incident.joined(name, device)
        return cls(
            offsets_of(degrees).to(index_type(len(to))),
            to,
            of_edges,
            sets.offsets,
            sets.relations,
            offsets_of(incidence).to(index_type(len(held))),
            held,
            relations,
        )

    def to(self, device: torch.device) -> CompactUnion:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        moved: dict[str, Any] = {
            name: value.to(device) for name, value in values.items() if isinstance(value, Tensor)
        }
        return replace(self, **moved)


def _blocks(
    graphs: Pair[KnowledgeGraph], device: torch.device
) -> Iterator[tuple[EdgeBlock, int, Tensor]]:
    """The edges of both graphs, what the numbers of their nodes begin at, and their relations.

    The tail receives from the head along r, the head from the tail along the inverse of r.
    """
    relations = sum(graph.num_relations for graph in graphs)
    nodes = names = 0
    for graph in graphs:
        own = graph.num_relations
        ends = graph.tails, graph.heads
        for block in edge_blocks(ends, graph.relations, graph.num_entities, own, device):
            labels = block.labels + names
            labels += (block.labels >= own) * (relations - own)
            yield block, nodes, labels
        nodes += graph.num_entities
        names += own


@dataclass(frozen=True, slots=True, eq=False)
class _RelationSets:
    """The distinct sets of relations; set r < the number of relations is {r}."""

    offsets: Tensor  # (sets + 1,) int64
    relations: Tensor  # (…,) int64: the relations of each set
    numbers: Tensor  # (edges,) int64: the set of each edge that has several relations

    @classmethod
    def of(cls, sizes: Tensor, members: Tensor, num_relations: int) -> _RelationSets:
        """The sets of all edges.

        Args:
            sizes: (edges,): relations of each edge that has several.
            members: (…,): these relations.
            num_relations: All of them.
        """
        offsets, device = offsets_of(sizes), sizes.device
        # Sets are compared by the sum of a random 64-bit number for each relation. Two different
        # sets have the same sum only by a collision of 64-bit numbers.
        tags = np.random.default_rng(0).integers(2**64, size=num_relations, dtype=np.uint64)
        tag = torch.from_numpy(tags.view(np.int64)).to(device)
        # Sums may overflow: they are the same modulo 2^64.
        added = offsets_of(tag.index_select(0, members.long()))
        sums = added[offsets[1:]] - added[offsets[:-1]]
        # Sets are numbered in the order of their sums without a sign.
        distinct, numbers = torch.unique(sums ^ LOWEST, return_inverse=True)
        places = torch.arange(len(sums), device=device)
        examples = numbers.new_full((len(distinct),), len(sums))
        examples.scatter_reduce_(0, numbers, places, "amin")  # the first edge with each
        counts = sizes[examples]
        _, cells = ranges(offsets[examples], counts)
        ones = torch.ones(num_relations, dtype=torch.int64, device=device)
        return cls(
            offsets_of(torch.cat([ones, counts])),
            torch.cat([torch.arange(num_relations, device=device), members[cells].long()]),
            numbers + num_relations,
        )


class Unions:
    """The last union that was asked for, so that several encoders share it."""

    def __init__(self) -> None:
        self._graphs: Pair[KnowledgeGraph] | None = None
        self._found: CompactUnion | None = None

    def of(self, graphs: Pair[KnowledgeGraph], device: torch.device) -> CompactUnion:
        """The union of both graphs, on the device."""
        if self._found is None or graphs is not self._graphs:
            self._found = None  # it is freed before the next one takes memory
            self._graphs, self._found = graphs, CompactUnion.of(graphs, device)
        return self._found.to(device)
