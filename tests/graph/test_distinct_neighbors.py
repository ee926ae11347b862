from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from clusterea.graph.distinct_neighbors import Neighbors
from clusterea.types import KnowledgeGraph
from small_graphs import knowledge_graphs, labeled_edges


@given(knowledge_graphs())
def test_neighbors_and_shares_are_those_of_the_loop(graph: KnowledgeGraph) -> None:
    near: list[set[int]] = [set() for _ in range(graph.num_entities)]
    for entity, _, other in labeled_edges(graph):
        near[entity].add(other)
    found = Neighbors.of(graph)
    assert [found.of_entity(each).tolist() for each in range(len(near))] == [*map(sorted, near)]
    assert found.counts().tolist() == [*map(len, near)]
    weights = np.linspace(0, 1, len(near))
    expected = [sum(weights[other] / len(near[other]) for other in others) for others in near]
    assert found.shares(weights).tolist() == pytest.approx(expected, abs=1e-7)
