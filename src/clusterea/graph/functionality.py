"""Functionality: how well a relation identifies its ends (appendix B of the paper)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clusterea.types import IntArray, KnowledgeGraph

FLOOR = 0.3  # the least weight of a relation, as in the original GCN-Align


def functionality(graph: KnowledgeGraph) -> NDArray[np.float64]:
    """(relations,): distinct heads over triples; 1 where a head determines its tail."""
    return _distinct_share(graph.heads, graph)


def inverse_functionality(graph: KnowledgeGraph) -> NDArray[np.float64]:
    """(relations,): distinct tails over triples; 1 where a tail determines its head."""
    return _distinct_share(graph.tails, graph)


def triple_weights(graph: KnowledgeGraph) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(triples,) each: the weight of a triple towards its tail and its head.

    A triple from an entity to itself adds nothing to the self-loop.
    """
    to_tail, to_head = (
        np.where(graph.heads == graph.tails, 0.0, weights[graph.relations])
        for weights in relation_weights(graph)
    )
    return to_tail, to_head


def relation_weights(graph: KnowledgeGraph) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(relations,) each: the weight of a triple towards its tail, ifun(r), and its head, fun(r).

    So a hub receives little from each of its neighbors, and they receive its messages in full. The
    opposite weights, another reading of appendix B, cost GCN-Align 4 to 8 points.
    """
    weights = inverse_functionality(graph), functionality(graph)
    to_tail, to_head = (np.maximum(each, FLOOR) for each in weights)
    return to_tail, to_head


def _distinct_share(ends: IntArray, graph: KnowledgeGraph) -> NDArray[np.float64]:
    keys = distinct(graph.relations * graph.num_entities + ends)
    counts = np.bincount(keys // max(graph.num_entities, 1), minlength=graph.num_relations)
    triples = np.bincount(graph.relations, minlength=graph.num_relations)
    return counts / np.maximum(triples, 1)


def distinct(values: IntArray) -> IntArray:
    """The distinct values, ascending. `np.unique` hashes them, which is ten times slower."""
    ordered = np.sort(values)
    result: IntArray = ordered[changes(ordered)]
    return result


def changes(values: IntArray) -> NDArray[np.bool_]:
    """True where a value differs from the one before it, and at the start."""
    first = np.ones(len(values), dtype=bool)
    first[1:] = values[1:] != values[:-1]
    return first
