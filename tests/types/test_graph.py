import numpy as np
import pytest

from clusterea.types import KnowledgeGraph


def test_degrees_count_both_ends_and_a_loop_twice() -> None:
    graph = KnowledgeGraph(np.array([[0, 0, 1], [1, 1, 1], [0, 1, 2]]), 4, 2)
    assert graph.degrees().tolist() == [2, 3, 1, 0]


def test_triples_are_read_only_but_the_callers_array_is_not() -> None:
    mine = np.array([[0, 0, 1]])
    graph = KnowledgeGraph(mine, 2, 1)
    with pytest.raises(ValueError, match="read-only"):
        graph.triples[0, 0] = 1
    mine[0, 0] = 1


@pytest.mark.parametrize(
    ("triples", "message"),
    [
        ([[0, 0, 2]], r"tails must lie in \[0, 2\). Got values from 2 to 2"),
        ([[0, 1, 1]], r"relations must lie in \[0, 1\)"),
        ([[-1, 0, 1]], r"heads must lie in \[0, 2\)"),
        ([[0, 0]], r"triples must have shape \(n, 3\). Got \(1, 2\)"),
        ([[0.0, 0.0, 1.0]], "triples must hold integers. Got float64"),
    ],
)
def test_wrong_triples_are_refused(triples: list[list[int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KnowledgeGraph(np.array(triples), 2, 1)


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(ValueError, match=r"num_entities must be an int in \[0, inf\). Got -1"):
        KnowledgeGraph(np.empty((0, 3), dtype=np.int64), -1, 0)


def test_repr_tells_sizes() -> None:
    graph = KnowledgeGraph(np.zeros((1500, 3), dtype=np.int64), 2000, 1)
    assert repr(graph) == "KnowledgeGraph(2,000 entities, 1 relations, 1,500 triples)"
