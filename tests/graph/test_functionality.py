"""Functionality and inverse functionality against a loop over triples."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clusterea.graph.functionality import distinct, functionality, inverse_functionality
from clusterea.types import KnowledgeGraph
from small_graphs import graph, knowledge_graphs


@given(knowledge_graphs())
def test_any_graph(example: KnowledgeGraph) -> None:
    heads: list[set[int]] = [set() for _ in range(example.num_relations)]
    tails: list[set[int]] = [set() for _ in range(example.num_relations)]
    triples = [0] * example.num_relations
    for head, relation, tail in example.triples.tolist():
        heads[relation].add(head)
        tails[relation].add(tail)
        triples[relation] += 1
    counts = [max(count, 1) for count in triples]  # a relation of no triple has 0
    forwards = [len(some) / count for some, count in zip(heads, counts, strict=True)]
    backwards = [len(some) / count for some, count in zip(tails, counts, strict=True)]
    np.testing.assert_allclose(functionality(example), forwards)
    np.testing.assert_allclose(inverse_functionality(example), backwards)


def test_born_in_is_a_function_and_its_inverse_is_not() -> None:
    born_in = graph([(0, 0, 3), (1, 0, 3), (2, 0, 3)], 4, 1)
    assert functionality(born_in).tolist() == [1.0]
    assert inverse_functionality(born_in).tolist() == [1 / 3]


def test_no_entities() -> None:
    assert functionality(graph([], 0, 0)).tolist() == []
    assert inverse_functionality(graph([], 0, 2)).tolist() == [0.0, 0.0]


@given(st.lists(st.integers(-5, 5)))
def test_distinct(values: list[int]) -> None:
    assert distinct(np.array(values, dtype=np.int64)).tolist() == sorted(set(values))
