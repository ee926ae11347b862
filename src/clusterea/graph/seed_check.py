"""`agreement`: whether the structure of two graphs supports a set of presumed pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clusterea.types import IntArray, KnowledgeGraph, Pair

SHUFFLES = 5
FEWEST = 20  # pairs with a neighbor in another pair, for a verdict
LEAST = 0.25  # advantage over shuffled pairs: about 0.35 if half of the pairs are right


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far the neighbors of paired entities are paired too."""

    advantage: float  # in [-1, 1]: how much more often than those of shuffled pairs
    checked: int  # pairs that have a neighbor in another pair, on both sides

    @property
    def is_mostly_wrong(self) -> bool:
        """Whether enough pairs were checked and the structure does not support them."""
        return self.checked >= FEWEST and self.advantage < LEAST


def agreement(graphs: Pair[KnowledgeGraph], pairs: IntArray) -> Agreement:
    """Compares the common neighbors of pairs with those of shuffled pairs.

    A common neighbor of a pair is another pair with an edge to it in both graphs. A pair wins
    against a shuffled one if it has more common neighbors, and loses if it has fewer. The
    advantage is the share of wins less the share of losses. For right pairs it is high, for random
    ones about zero; hubs, which are common neighbors of all, change nothing.

    Args:
        graphs: Both graphs.
        pairs: (n, 2), one-to-one.
    """
    edges = Pair(*(_edges(graph, ends) for graph, ends in zip(graphs, pairs.T, strict=True)))
    has_neighbor = edges.map(lambda side: np.diff(side.indptr) > 0)
    at = np.flatnonzero(has_neighbor.source & has_neighbor.target)
    if not len(at):
        return Agreement(0.0, 0)
    own = edges.source[at]
    common = _common(own, edges.target[at])
    draw = np.random.default_rng(0)
    signs = [
        np.sign(common - _common(own, edges.target[draw.permutation(at)])).mean()
        for _ in range(SHUFFLES)
    ]
    return Agreement(float(np.mean(signs)), len(at))


def _edges(graph: KnowledgeGraph, ends: IntArray):  # type: ignore[no-untyped-def]  # of scipy
    """(pairs, pairs) CSR of ones: which pairs' entities are neighbors in this graph."""
    from scipy.sparse import csr_array

    pair_of = np.full(graph.num_entities, -1)
    pair_of[ends] = np.arange(len(ends))
    heads, tails = pair_of[graph.heads], pair_of[graph.tails]
    kept = (heads >= 0) & (tails >= 0) & (heads != tails)
    rows = np.concatenate([heads[kept], tails[kept]])
    columns = np.concatenate([tails[kept], heads[kept]])
    shape = len(ends), len(ends)
    matrix = csr_array((np.ones(len(rows), dtype=np.int64), (rows, columns)), shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def _common(one, other) -> IntArray:  # type: ignore[no-untyped-def]  # of scipy
    """(rows,): the number of columns that are in both rows."""
    counts: IntArray = np.asarray(one.multiply(other).sum(axis=1)).ravel()
    return counts
