"""`UnionGraph`: both knowledge graphs as one graph of merged, directed edges."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clusterea.graph.adjacency import normalize
from clusterea.graph.compact_union import CompactUnion
from clusterea.graph.functionality import FLOOR
from clusterea.numerics.index_types import as_index
from clusterea.numerics.segments import owners, segment_sum
from clusterea.types import KnowledgeGraph, Pair


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


def union(graphs: Pair[KnowledgeGraph], found: CompactUnion | None = None) -> UnionGraph:
    """The union of both graphs, where `found` is; on the host if that is not given.

    Args:
        graphs: Both graphs.
        found: `CompactUnion.of` them, if it is there already.
    """
    found = CompactUnion.of(graphs) if found is None else found
    edges = len(found.neighbors)
    receivers, senders = owners(found.offsets.long(), edges), found.neighbors.long()
    sets = found.relation_sets.long()
    summed = _set_weights(graphs, found).index_select(0, sets)
    summed[receivers == senders] = 0  # adds nothing to the self-loop
    weights, self_weights = _normalized(summed, receivers, senders, found.offsets.long())
    return UnionGraph(
        offsets=found.offsets.long(),
        neighbors=senders,
        relation_sets=sets,
        weights=weights,
        self_weights=self_weights,
        set_offsets=found.set_offsets,
        set_relations=found.set_relations,
        incident_offsets=found.incident_offsets.long(),
        incident_relations=found.incident_relations.long(),
        num_entities=graphs.map(lambda graph: graph.num_entities),
        num_relations=found.num_relations,
    )


def union_bytes(found: CompactUnion) -> int:
    """The bytes of the union with weights, and of what making it takes beside it."""
    edges, nodes = len(found.neighbors), found.num_nodes
    return 64 * edges + 48 * nodes + 8 * len(found.incident_relations)


def _set_weights(graphs: Pair[KnowledgeGraph], found: CompactUnion) -> Tensor:
    """(sets,) float64: the functionality weights of a set's relations, added up.

    A relation is on the edges of as many nodes as it has distinct tails; its inverse, of heads.
    """
    ends = as_index(found.incident_relations).bincount(minlength=found.num_relations)
    triples = np.concatenate(
        [np.bincount(graph.relations, minlength=graph.num_relations) for graph in graphs]
    )
    # Towards the tail along a relation, towards the head along its inverse.
    shares = ends.cpu().numpy() / np.maximum(np.tile(triples, 2), 1)
    weights = np.maximum(shares, FLOOR)
    starts = found.set_offsets[:-1].cpu().numpy()
    summed = (
        np.add.reduceat(weights[found.set_relations.cpu().numpy()], starts)
        if len(starts)
        else weights
    )
    return torch.from_numpy(summed).to(found.offsets.device)


def _normalized(
    weights: Tensor, receivers: Tensor, senders: Tensor, offsets: Tensor
) -> tuple[Tensor, Tensor]:
    """`adjacency.normalize`, on the device of the weights. The last digits may differ on a GPU."""
    if weights.device.type == "cpu":
        parts = weights.numpy(), receivers.numpy(), senders.numpy()
        cells, own = normalize(*parts, len(offsets) - 1)
        return torch.from_numpy(cells), torch.from_numpy(own)
    strength = 1 + segment_sum(weights, offsets)
    scale = strength.rsqrt()
    cells_there = weights * scale.index_select(0, receivers) * scale.index_select(0, senders)
    return cells_there.float(), strength.reciprocal().float()
