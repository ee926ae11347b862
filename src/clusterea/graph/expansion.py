"""Neighborhood expansion: from some nodes to all that their embeddings are computed from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clusterea.graph.union import UnionGraph
from clusterea.numerics.segments import lengths, offsets_of, owners, ranges
from clusterea.numerics.sparse_matmul import SparseMatrix


@dataclass(frozen=True, slots=True)
class Block:
    """One hop: `receivers` receive from some of `senders`. Ids of edges are local to the block."""

    nodes: Tensor  # (senders,) the graph's node ids, ascending
    receivers: Tensor  # (receivers,) the index of each receiver in `nodes`
    offsets: Tensor  # (receivers + 1,)
    senders: Tensor  # (edges,) the index of each edge's sender in `nodes`
    relation_sets: Tensor  # (edges,) the graph's set of relations on each edge
    weights: Tensor  # (edges,) float32: the graph's weight of each edge
    self_weights: Tensor  # (receivers,) float32
    degrees: Tensor  # (receivers,) number of edges in the graph

    @property
    def num_nodes(self) -> int:
        return self.nodes.numel()

    @property
    def num_receivers(self) -> int:
        return self.receivers.numel()

    @property
    def num_edges(self) -> int:
        return self.senders.numel()

    def to(self, device: torch.device) -> Block:
        if device == self.nodes.device:
            return self
        return Block(
            *(getattr(self, name).to(device, non_blocking=True) for name in self.__slots__)
        )


def whole_block(graph: UnionGraph, start: int, stop: int) -> Block:
    """The full neighborhoods of nodes `start` to `stop`; local ids are the graph's own."""
    first, last = int(graph.offsets[start]), int(graph.offsets[stop])
    offsets = graph.offsets[start : stop + 1] - first
    return Block(
        nodes=torch.arange(graph.num_nodes, device=graph.device),
        receivers=torch.arange(start, stop, device=graph.device),
        offsets=offsets,
        senders=graph.neighbors[first:last],
        relation_sets=graph.relation_sets[first:last],
        weights=graph.weights[first:last],
        self_weights=graph.self_weights[start:stop],
        degrees=lengths(offsets),
    )


def incidence(graph: UnionGraph, nodes: Tensor) -> SparseMatrix:
    """(nodes, relations): the mean over the distinct relations on each node's edges."""
    starts = graph.incident_offsets.index_select(0, nodes)
    counts = graph.incident_offsets.index_select(0, nodes + 1) - starts
    _, positions = ranges(starts, counts)
    relations = graph.incident_relations.index_select(0, positions)
    return SparseMatrix.means(offsets_of(counts), relations, graph.num_relations)


class Expander:
    """Expands nodes hop by hop. It keeps two scratch arrays of the graph's size between calls."""

    def __init__(self, graph: UnionGraph) -> None:
        self._graph = graph
        self._degrees = lengths(graph.offsets)
        self._marked = torch.zeros(graph.num_nodes, dtype=torch.bool, device=graph.device)
        self._position = torch.zeros(graph.num_nodes, dtype=torch.int64, device=graph.device)

    def expand(
        self, nodes: Tensor, hops: int, fanout: int | None, generator: torch.Generator
    ) -> list[Block]:
        """The blocks from `nodes` outwards: block 0 ends at `nodes`, the last is the widest.

        The receivers of block i + 1 are the nodes of block i. With a fan-out, each node receives
        from at most so many neighbors, drawn without replacement; without, from all.
        """
        blocks = []
        for _ in range(hops):
            block = self.hop(nodes, fanout, generator)
            blocks.append(block)
            nodes = block.nodes
        return blocks

    def hop(self, nodes: Tensor, fanout: int | None, generator: torch.Generator) -> Block:
        """One hop from `nodes`, which keep their order."""
        degrees = self._degrees.index_select(0, nodes)
        taken = degrees if fanout is None else degrees.clamp(max=fanout)
        offsets = offsets_of(taken)
        total = int(offsets[-1])
        owner = owners(offsets, total)
        # The edge's rank among its node's neighbors: 0, 1, …, or drawn where there are more.
        rank = torch.arange(total, device=nodes.device) - offsets.index_select(0, owner)
        if fanout is not None:
            crowded = (degrees > fanout).nonzero().flatten()
            drawn = draw_without_replacement(
                degrees.index_select(0, crowded), fanout, generator
            )  # (crowded, fanout)
            slots = offsets.index_select(0, crowded)[:, None] + torch.arange(
                fanout, device=nodes.device
            )
            rank.index_copy_(0, slots.flatten(), drawn.flatten())
        starts = self._graph.offsets.index_select(0, nodes)
        edges = starts.index_select(0, owner) + rank
        neighbors = self._graph.neighbors.index_select(0, edges)
        everyone = self._distinct(nodes, neighbors)
        return Block(
            nodes=everyone,
            receivers=self._position.index_select(0, nodes),
            offsets=offsets,
            senders=self._position.index_select(0, neighbors),
            relation_sets=self._graph.relation_sets.index_select(0, edges),
            weights=self._graph.weights.index_select(0, edges),
            self_weights=self._graph.self_weights.index_select(0, nodes),
            degrees=degrees,
        )

    def _distinct(self, nodes: Tensor, neighbors: Tensor) -> Tensor:
        """All nodes that occur, ascending; `_position` then has the index of each in the result.

        Marking and scanning a byte for each node is faster than sorting the edges, and unlike a
        hash table it always gives the same order.
        """
        self._marked[nodes] = True
        self._marked[neighbors] = True
        everyone = self._marked.nonzero().flatten()
        self._marked[everyone] = False
        self._position[everyone] = torch.arange(everyone.numel(), device=everyone.device)
        return everyone


def draw_without_replacement(sizes: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """(n, count): distinct numbers from [0, size) for each of n sizes, all at least `count`.

    Floyd's algorithm, one round for each of the `count` columns.
    """
    drawn = torch.empty(sizes.numel(), count, dtype=torch.int64, device=sizes.device)
    chances = torch.rand(
        sizes.numel(), count, dtype=torch.float64, device=sizes.device, generator=generator
    )
    for column in range(count):
        last = sizes - count + column
        candidate = (chances[:, column] * (last + 1)).long()
        repeated = (drawn[:, :column] == candidate[:, None]).any(1)
        drawn[:, column] = torch.where(repeated, last, candidate)
    return drawn
