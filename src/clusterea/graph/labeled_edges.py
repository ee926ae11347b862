"""`LabeledEdges`: the edges of each entity, with their relation and direction, to look up."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clusterea.numerics.lookup import find_sorted
from clusterea.numerics.segments import lengths, offsets_of, owners, ranges
from clusterea.types import KnowledgeGraph, Pair


@dataclass(frozen=True, slots=True, eq=False)
class LabeledEdges:
    """Every triple as an edge of its head and an edge of its tail; loops are left out.

    The kind of an edge is its relation where the entity is the head, and relation + number of
    relations where it is the tail.
    """

    offsets: Tensor  # (entities + 1,) int64: where an entity's edges begin
    keys: Tensor  # (edges,) int64, ascending: entity · n + neighbor
    kinds: Tensor  # (edges,) int64
    siblings: Tensor  # (edges,) int64: entities that the neighbor has by the same kind, itself too
    num_entities: int
    num_kinds: int

    @classmethod
    def of(cls, graph: KnowledgeGraph, device: torch.device) -> LabeledEdges:
        triples = torch.tensor(graph.triples, device=device)
        heads, relations, tails = triples[triples[:, 0] != triples[:, 2]].unbind(1)
        size, kinds = graph.num_entities, 2 * graph.num_relations
        # By ends, then by kind. One sort by a single key could overflow int64; the second of these
        # two sorts is stable.
        labels = torch.cat([relations, relations + graph.num_relations])
        pairs = torch.cat([heads * size + tails, tails * size + heads])
        order = labels.argsort()
        order = order[pairs[order].argsort(stable=True)]
        labels, pairs = labels[order], pairs[order]
        is_first = torch.ones_like(pairs, dtype=torch.bool)
        is_first[1:] = (pairs[1:] != pairs[:-1]) | (labels[1:] != labels[:-1])
        labels, pairs = labels[is_first], pairs[is_first]
        others = pairs % max(size, 1)
        _, slots, counts = torch.unique(
            others * kinds + labels, return_inverse=True, return_counts=True
        )
        offsets = offsets_of((pairs // max(size, 1)).bincount(minlength=size))
        return cls(offsets, pairs, labels, counts[slots], size, kinds)

    def __len__(self) -> int:
        return self.keys.numel()

    def entities(self) -> Tensor:
        """(edges,): the entity of each edge."""
        return owners(self.offsets, len(self))

    def neighbors(self, edges: Tensor | None = None) -> Tensor:
        """(edges,): the entity at the other end, of all edges or of these."""
        keys = self.keys if edges is None else self.keys[edges]
        return keys % max(self.num_entities, 1)

    def num_neighbors(self) -> Tensor:
        """(entities,): the distinct neighbors of each entity."""
        pairs: Tensor = torch.unique_consecutive(self.keys)
        return (pairs // max(self.num_entities, 1)).bincount(minlength=self.num_entities)

    def of_entities(self, entities: Tensor) -> tuple[Tensor, Tensor]:
        """(found,) each: an index into `entities`, and an edge of that entity."""
        return ranges(self.offsets[entities], lengths(self.offsets).index_select(0, entities))

    def between(self, entities: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
        """(found,) each: the index of a pair, and an edge between the two."""
        keys = entities * self.num_entities + others
        begin, is_joined = find_sorted(self.keys, keys)
        # Few pairs are joined, so only their edges are looked up.
        joined = is_joined.nonzero().flatten()
        begin, keys = begin[joined], keys[joined]
        at, edges = ranges(begin, torch.searchsorted(self.keys, keys, right=True) - begin)
        return joined[at], edges


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
