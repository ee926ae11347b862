"""The functionality-weighted adjacency of appendix B, as a matrix to multiply with."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from clusterea.graph.functionality import changes, triple_weights
from clusterea.numerics.sparse_matmul import SparseMatrix
from clusterea.types import IntArray, KnowledgeGraph


def weighted_adjacency(graph: KnowledgeGraph) -> SparseMatrix:
    """(entities, entities): D^-½ (A + I) D^-½; row v has the weights of v's incoming messages."""
    nodes = graph.num_entities
    to_tail, to_head = triple_weights(graph)
    everyone = np.arange(nodes)
    receivers = np.concatenate([graph.tails, graph.heads, everyone])
    senders = np.concatenate([graph.heads, graph.tails, everyone])
    weights = np.concatenate([to_tail, to_head, np.zeros(nodes)])
    keys = receivers * nodes + senders
    order = np.argsort(keys)
    keys = keys[order]
    starts = np.flatnonzero(changes(keys))
    summed = np.add.reduceat(weights[order], starts) if nodes else weights
    receivers, senders = np.divmod(keys[starts], max(nodes, 1))
    cells, own = normalize(summed, receivers, senders, nodes)
    cells[receivers == senders] = own
    offsets = np.concatenate([np.zeros(1, np.int64), np.bincount(receivers, minlength=nodes)])
    return SparseMatrix(
        torch.from_numpy(offsets.cumsum()),
        torch.from_numpy(senders),
        torch.from_numpy(cells),
        nodes,
    )


def normalize(
    weights: NDArray[np.float64], receivers: IntArray, senders: IntArray, nodes: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The cells and the diagonal of D^-½ (A + I) D^-½, where D has the row sums of A + I."""
    strength = 1 + np.bincount(receivers, weights=weights, minlength=nodes)
    scale = strength**-0.5
    cells = weights * scale[receivers] * scale[senders]
    return cells.astype(np.float32), (1 / strength).astype(np.float32)
