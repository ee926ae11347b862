"""How much a relation says about its ends (appendix B of the paper)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clusterea.types import IntArray, KnowledgeGraph


def functionality(graph: KnowledgeGraph) -> NDArray[np.float64]:
    """(relations,): distinct heads over triples; 1 where a head determines its tail."""
    return _distinct_share(graph.heads, graph)


def inverse_functionality(graph: KnowledgeGraph) -> NDArray[np.float64]:
    """(relations,): distinct tails over triples; 1 where a tail determines its head."""
    return _distinct_share(graph.tails, graph)


def _distinct_share(ends: IntArray, graph: KnowledgeGraph) -> NDArray[np.float64]:
    keys = distinct(graph.relations * graph.num_entities + ends)
    counts = np.bincount(keys // max(graph.num_entities, 1), minlength=graph.num_relations)
    triples = np.bincount(graph.relations, minlength=graph.num_relations)
    return counts / np.maximum(triples, 1)


def distinct(values: IntArray) -> IntArray:
    """The distinct values, rising. `np.unique` hashes them, at ten times the cost of sorting."""
    ordered = np.sort(values)
    result: IntArray = ordered[changes(ordered)]
    return result


def changes(values: IntArray) -> NDArray[np.bool_]:
    """True where a value differs from the one before it, and at the start."""
    first = np.ones(len(values), dtype=bool)
    first[1:] = values[1:] != values[:-1]
    return first
