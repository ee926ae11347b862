"""`LabeledEdges`: who is joined to whom, and by which relation in which direction, to look up."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clusterea.numerics.segments import lengths, offsets_of, owners, ranges
from clusterea.types import KnowledgeGraph


@dataclass(frozen=True, slots=True, eq=False)
class LabeledEdges:
    """Every triple from both its ends, once; loops are left out.

    The kind of an edge is its relation, where the entity is the head, or else that relation plus
    the number of relations.
    """

    offsets: Tensor  # (entities + 1,) int64: where an entity's edges begin
    keys: Tensor  # (edges,) int64, rising: entity · n + neighbor
    kinds: Tensor  # (edges,) int64
    siblings: Tensor  # (edges,) int64: entities that the neighbor has by the same kind, itself too
    num_entities: int
    num_kinds: int

    @classmethod
    def of(cls, graph: KnowledgeGraph, device: torch.device) -> LabeledEdges:
        triples = torch.tensor(graph.triples, device=device)
        heads, relations, tails = triples[triples[:, 0] != triples[:, 2]].unbind(1)
        size, kinds = graph.num_entities, 2 * graph.num_relations
        # By ends, then by kind: two sorts, of which the second is stable, where one key of both
        # might be too large a number.
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
        """(edges,): whose edge each is."""
        return owners(self.offsets, len(self))

    def neighbors(self, edges: Tensor | None = None) -> Tensor:
        """(edges,): whom each leads to; of all, or of these."""
        keys = self.keys if edges is None else self.keys[edges]
        return keys % max(self.num_entities, 1)

    def of_entities(self, entities: Tensor) -> tuple[Tensor, Tensor]:
        """(found,) each: the place in `entities`, and an edge of the one there."""
        return ranges(self.offsets[entities], lengths(self.offsets).index_select(0, entities))

    def between(self, entities: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
        """(found,) each: the place of a pair, and an edge that joins it."""
        keys = entities * self.num_entities + others
        begin = torch.searchsorted(self.keys, keys)
        # Few pairs are joined: only of these is it asked where their edges end.
        hits = torch.zeros_like(keys, dtype=torch.bool)
        if len(self):
            hits = self.keys[begin.clamp(max=len(self) - 1)] == keys
        joined = hits.nonzero().flatten()
        begin, keys = begin[joined], keys[joined]
        at, edges = ranges(begin, torch.searchsorted(self.keys, keys, right=True) - begin)
        return joined[at], edges
