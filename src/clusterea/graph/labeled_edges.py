"""`LabeledEdges`: the edges of each entity, with their relation and direction, to look up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from clusterea.graph.sorted_edges import Column, EdgeBlock, edge_blocks
from clusterea.numerics.block_sizes import BLOCK_SIZES
from clusterea.numerics.index_types import index_type, number_type
from clusterea.numerics.lookup import find_in_ranges
from clusterea.numerics.segments import lengths, offsets_of, owners, ranges
from clusterea.types import KnowledgeGraph, Pair


@dataclass(frozen=True, slots=True, eq=False)
class LabeledEdges:
    """Every triple as an edge of its head and an edge of its tail; loops are left out.

    The kind of an edge is its relation where the entity is the head, and relation + number of
    relations where it is the tail. The edges of an entity rise by neighbor, then by kind. An edge
    takes 10 bytes, if there are at most 32,767 kinds. Look-ups give int64.
    """

    offsets: Tensor  # (entities + 1,) int64: where an entity's edges begin
    ends: Tensor  # (edges,): the neighbor
    labels: Tensor  # (edges,): the kind
    fans: Tensor  # (edges,), or (0,): see `siblings`
    num_entities: int
    num_kinds: int

    @classmethod
    def of(
        cls, graph: KnowledgeGraph, device: torch.device, *, siblings: bool = True
    ) -> LabeledEdges:
        """The edges of a graph. `siblings` can be looked up only if they are asked for."""
        size, kinds = graph.num_entities, 2 * graph.num_relations
        node, kind = index_type(size), number_type(kinds)
        degrees, incidence = (torch.zeros(size, dtype=torch.int64, device=device) for _ in range(2))
        ends, labels, held, counts = (Column() for _ in range(4))
        for block in _blocks(graph, device):
            own = slice(block.start, block.stop)
            kept = (block.is_new & (block.owners != block.others)).nonzero().flatten()
            degrees[own] = block.counts(block.owners[kept])
            ends.add(block.others[kept], node)
            labels.add(block.labels[kept], kind)
            if siblings:
                incidence[own], names, count = block.by_label(block.labels, kinds, kept)
                held.add(names, kind)
                counts.add(count, node)
        to, names = ends.joined(node, device), labels.joined(kind, device)
        each = to[:0]
        if siblings:
            each = _fans(
                to,
                names,
                offsets_of(incidence),
                held.joined(kind, device),
                counts.joined(node, device),
                kinds,
            )
        return cls(offsets_of(degrees), to, names, each, size, kinds)

    def __len__(self) -> int:
        return self.ends.numel()

    def entities(self) -> Tensor:
        """(edges,): the entity of each edge."""
        return owners(self.offsets, len(self))

    def neighbors(self, edges: Tensor | None = None) -> Tensor:
        """(edges,): the entity at the other end, of all edges or of these."""
        return _values(self.ends, edges)

    def kinds(self, edges: Tensor | None = None) -> Tensor:
        """(edges,): the kind of all edges, or of these."""
        return _values(self.labels, edges)

    def siblings(self, edges: Tensor | None = None) -> Tensor:
        """(edges,): how many entities the neighbor has by the same kind, this one too."""
        return _values(self.fans, edges)

    def num_neighbors(self) -> Tensor:
        """(entities,): the distinct neighbors of each entity."""
        again = (self.ends[1:] == self.ends[:-1]).nonzero().flatten() + 1
        owner = torch.searchsorted(self.offsets, again, right=True) - 1
        # Not those that are the first of their entity.
        owner = owner[self.offsets[owner] < again]
        return lengths(self.offsets) - owner.bincount(minlength=self.num_entities)

    def of_entities(self, entities: Tensor) -> tuple[Tensor, Tensor]:
        """(found,) each: an index into `entities`, and an edge of that entity."""
        return ranges(self.offsets[entities], lengths(self.offsets).index_select(0, entities))

    def between(self, entities: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
        """(found,) each: the index of a pair, and an edge between the two."""
        stop = self.offsets[entities + 1]
        begin, is_joined = find_in_ranges(self.ends, self.offsets[entities], stop, others)
        # Few pairs are joined, so only their edges are looked up.
        joined = is_joined.nonzero().flatten()
        begin = begin[joined]
        end, _ = find_in_ranges(self.ends, begin, stop[joined], others[joined] + 1)
        at, edges = ranges(begin, end - begin)
        return joined[at], edges


def _values(numbers: Tensor, edges: Tensor | None) -> Tensor:
    return (numbers if edges is None else numbers.index_select(0, edges)).long()


def _blocks(graph: KnowledgeGraph, device: torch.device) -> Iterator[EdgeBlock]:
    ends = graph.heads, graph.tails
    return edge_blocks(ends, graph.relations, graph.num_entities, graph.num_relations, device)


def _fans(
    ends: Tensor, labels: Tensor, offsets: Tensor, held: Tensor, counts: Tensor, num_kinds: int
) -> Tensor:
    """(edges,): edges that the entity at the other end has by the same kind, seen from there.

    Args:
        ends: (edges,): the other end.
        labels: (edges,): the kind, seen from this end.
        offsets: (entities + 1,): of the next two.
        held: (…,): the kinds of each entity's edges, rising.
        counts: (…,): the edges of each.
        num_kinds: How many there are.
    """
    fans = torch.empty_like(ends)
    step = BLOCK_SIZES["sorted edges"][ends.device.type]
    for start in range(0, len(ends), step):
        some = slice(start, start + step)
        other = ends[some].long()
        kinds = (labels[some].long() + num_kinds // 2) % max(num_kinds, 1)
        at, _ = find_in_ranges(held, offsets[other], offsets[other + 1], kinds)
        fans[some] = counts[at]
    return fans


def edges_to_partners(
    pairs: Pair[Tensor], edges: Pair[LabeledEdges], partner: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """(found,) each: a pair, and an edge of each of its entities, which lead to partners.

    Args:
        pairs: (n,) of each side: entities.
        edges: Of each side.
        partner: (source entities,): the target entity, -1 for none.
    """
    at, mine = edges.source.of_entities(pairs.source)
    partners = partner[edges.source.neighbors(mine)]
    has_one = (partners >= 0).nonzero().flatten()
    found, theirs = edges.target.between(pairs.target[at[has_one]], partners[has_one])
    kept = has_one[found]
    return at[kept], mine[kept], theirs
