"""The weighted adjacency against a loop over triples, and against the union's weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from numpy.typing import NDArray

from clusterea.graph.adjacency import weighted_adjacency
from clusterea.graph.functionality import triple_weights
from clusterea.types import KnowledgeGraph
from small_graphs import graph, knowledge_graphs

Floats = NDArray[np.float64]


def slow_weights(side: KnowledgeGraph) -> tuple[list[float], list[float]]:
    """Towards the tail and towards the head, triple by triple."""
    triples = side.triples.tolist()
    to_tail, to_head = [], []
    for head, relation, tail in triples:
        same = [(h, t) for h, r, t in triples if r == relation]
        fun = len({h for h, _ in same}) / len(same)
        ifun = len({t for _, t in same}) / len(same)
        to_tail.append(0.0 if head == tail else max(ifun, 0.3))
        to_head.append(0.0 if head == tail else max(fun, 0.3))
    return to_tail, to_head


def slow_adjacency(side: KnowledgeGraph) -> Floats:
    """D^-½ (A + I) D^-½ from the definition; row: receiver, column: sender."""
    nodes = side.num_entities
    matrix: Floats = np.eye(nodes)
    rows = zip(side.triples.tolist(), *slow_weights(side), strict=True)
    for (head, _, tail), to_tail, to_head in rows:
        matrix[tail, head] += to_tail
        matrix[head, tail] += to_head
    degrees = matrix.sum(1)
    for receiver in range(nodes):
        for sender in range(nodes):
            matrix[receiver, sender] /= (degrees[receiver] * degrees[sender]) ** 0.5
    return matrix


def dense(side: KnowledgeGraph) -> Floats:
    matrix = weighted_adjacency(side)
    result = np.zeros((side.num_entities, side.num_entities))
    for row in range(matrix.num_rows):
        start, stop = matrix.offsets[row : row + 2].tolist()
        columns = matrix.columns[start:stop].tolist()
        assert columns == sorted(set(columns))  # rising, no cell twice
        assert row in columns  # everyone hears itself
        result[row, columns] = matrix.values[start:stop].numpy()
    return result


@given(knowledge_graphs())
def test_weights_of_any_graph(side: KnowledgeGraph) -> None:
    for weights, wanted in zip(triple_weights(side), slow_weights(side), strict=True):
        np.testing.assert_allclose(weights, wanted)


@given(knowledge_graphs())
def test_any_graph(side: KnowledgeGraph) -> None:
    np.testing.assert_allclose(dense(side), slow_adjacency(side), rtol=1e-6)


def test_by_hand() -> None:
    # Three are born in one place: fun = 1, ifun = 1/3. The place has degree 1 + 3/3, they 1 + 1.
    born_in = graph([(0, 0, 3), (1, 0, 3), (2, 0, 3), (2, 0, 2)], 4, 1)
    # With the loop: heads {0, 1, 2} of 4 triples, tails {2, 3} of 4.
    to_tail, to_head = triple_weights(born_in)
    assert to_tail.tolist() == [0.5, 0.5, 0.5, 0.0]
    assert to_head.tolist() == [0.75, 0.75, 0.75, 0.0]
    place, person = 1 + 3 * 0.5, 1 + 0.75
    wanted = np.diag([1 / person] * 3 + [1 / place])
    wanted[3, :3] = 0.5 / (place * person) ** 0.5
    wanted[:3, 3] = 0.75 / (place * person) ** 0.5
    np.testing.assert_allclose(dense(born_in), wanted, rtol=1e-6)


def test_no_relation_weighs_less_than_the_floor() -> None:
    to_tail, to_head = triple_weights(graph([(i, 0, 5) for i in range(5)], 6, 1))
    assert to_tail.tolist() == [0.3] * 5  # not 1 / 5
    assert to_head.tolist() == [1.0] * 5


@pytest.mark.parametrize("nodes", [0, 3])
def test_no_triples(nodes: int) -> None:
    matrix = weighted_adjacency(graph([], nodes, 0))
    assert (matrix.num_rows, matrix.num_columns) == (nodes, nodes)
    torch.testing.assert_close(matrix @ torch.ones(nodes, 2), torch.ones(nodes, 2))
