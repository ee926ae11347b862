"""`UnionGraph`: both knowledge graphs as one graph of merged, directed edges."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clusterea.graph.adjacency import normalize
from clusterea.graph.functionality import changes, distinct, triple_weights
from clusterea.types import IntArray, KnowledgeGraph, Pair


@dataclass(frozen=True, slots=True, repr=False)
class UnionGraph:
    """A graph whose nodes are the source entities, followed by the target entities.

    Node v receives from `neighbors[offsets[v]:offsets[v + 1]]`. Each triple is an edge in both
    directions. Parallel triples are one edge with a set of relations. There are few different sets,
    so an edge holds the number of its set. Relation r of the target is r + |R_s|, and the inverse
    of r is r + R, where R = |R_s| + |R_t|.
    """

    offsets: Tensor  # (nodes + 1,) int64
    neighbors: Tensor  # (edges,) int64, ascending within a node
    relation_sets: Tensor  # (edges,) int64
    weights: Tensor  # (edges,) float32: D^-½ (A + I) D^-½ of the functionality weights A
    self_weights: Tensor  # (nodes,) float32: the diagonal of the same matrix
    set_offsets: Tensor  # (sets + 1,) int64
    set_relations: Tensor  # (…,) int64: the relations of each set
    incident_offsets: Tensor  # (nodes + 1,) int64
    incident_relations: Tensor  # (…,) int64: the distinct relations on a node's edges
    num_entities: Pair[int]
    num_relations: int  # with inverses: 2 R

    @property
    def num_nodes(self) -> int:
        return self.offsets.numel() - 1

    @property
    def num_edges(self) -> int:
        return self.neighbors.numel()

    @property
    def num_sets(self) -> int:
        return self.set_offsets.numel() - 1

    @property
    def device(self) -> torch.device:
        return self.offsets.device

    def num_bytes(self) -> int:
        return sum(tensor.nbytes for tensor in self._tensors().values())

    def to(self, device: torch.device) -> UnionGraph:
        moved: dict[str, Any] = {name: value.to(device) for name, value in self._tensors().items()}
        return replace(self, **moved)

    def _tensors(self) -> dict[str, Tensor]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}

    def __repr__(self) -> str:
        return (
            f"UnionGraph({self.num_nodes:,} nodes, {self.num_edges:,} edges, "
            f"{self.num_relations:,} relations with inverses in {self.num_sets:,} sets)"
        )


def union(graphs: Pair[KnowledgeGraph]) -> UnionGraph:
    """The union of both graphs, on the host."""
    source, target = graphs
    nodes = source.num_entities + target.num_entities
    relations = source.num_relations + target.num_relations
    shifted = Pair(
        source.triples,
        target.triples + np.array([source.num_entities, source.num_relations, source.num_entities]),
    )
    heads, names, tails = np.concatenate(list(shifted)).T
    # The tail receives from the head along r, the head from the tail along the inverse of r.
    receivers = np.concatenate([tails, heads])
    senders = np.concatenate([heads, tails])
    labels = np.concatenate([names, names + relations])
    of_source, of_target = graphs.map(triple_weights)
    weights = np.concatenate([of_source[0], of_target[0], of_source[1], of_target[1]])

    if nodes * nodes * 2 * relations < 2**63:  # an edge fits in one integer, which sorts faster
        order = np.argsort((receivers * nodes + senders) * (2 * relations) + labels)
    else:
        order = np.lexsort((labels, senders, receivers))
    receivers, senders, labels = receivers[order], senders[order], labels[order]
    starts = np.flatnonzero(changes(receivers) | changes(senders))
    ends = np.append(starts[1:], len(labels))
    set_of_edge, set_offsets, set_relations = _relation_sets(labels, starts, ends, 2 * relations)

    incident = distinct(receivers * (2 * relations) + labels)
    degree = np.bincount(receivers[starts], minlength=nodes)
    incidence = np.bincount(incident // (2 * relations), minlength=nodes)
    summed = np.add.reduceat(weights[order], starts) if len(starts) else weights
    normalized, self_weights = normalize(summed, receivers[starts], senders[starts], nodes)
    return UnionGraph(
        offsets=_offsets(degree),
        neighbors=torch.from_numpy(senders[starts]),
        relation_sets=torch.from_numpy(set_of_edge),
        weights=torch.from_numpy(normalized),
        self_weights=torch.from_numpy(self_weights),
        set_offsets=torch.from_numpy(set_offsets),
        set_relations=torch.from_numpy(set_relations),
        incident_offsets=_offsets(incidence),
        incident_relations=torch.from_numpy(incident % (2 * relations)),
        num_entities=graphs.map(lambda graph: graph.num_entities),
        num_relations=2 * relations,
    )


def _offsets(counts: IntArray) -> Tensor:
    return torch.from_numpy(np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)]))


def _relation_sets(
    labels: IntArray, starts: IntArray, ends: IntArray, num_relations: int
) -> tuple[IntArray, IntArray, IntArray]:
    """The set of each edge, and the sets in CSR form; set r < num_relations is {r}."""
    sizes = ends - starts
    many = np.flatnonzero(sizes > 1)
    # Sets are compared by the sum of a random 64-bit number for each relation. Two different sets
    # have the same sum only by a collision of 64-bit numbers.
    tags = np.random.default_rng(0).integers(2**64, size=num_relations, dtype=np.uint64)
    sums = np.add.reduceat(tags[labels], starts)[many] if len(many) else np.empty(0, np.uint64)
    _, first, inverse = np.unique(sums, return_index=True, return_inverse=True)
    set_of_edge = labels[starts].copy()
    set_of_edge[many] = num_relations + inverse
    examples = many[first]
    rows = np.concatenate(
        [np.arange(num_relations), *(labels[starts[e] : ends[e]] for e in examples)]
    )
    counts = np.concatenate([np.ones(num_relations, dtype=np.int64), sizes[examples]])
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    return set_of_edge, offsets, rows
