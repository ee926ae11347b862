import numpy as np
import pytest

from clusterea.types import AlignmentTask, KnowledgeGraph, Pair

GRAPHS = Pair(
    KnowledgeGraph(np.array([[0, 0, 1]]), 2, 1), KnowledgeGraph(np.array([[0, 0, 2]]), 3, 1)
)


def test_swap_turns_graphs_and_seeds() -> None:
    swapped = AlignmentTask(GRAPHS, np.array([[1, 2]])).swap()
    assert swapped.seeds.tolist() == [[2, 1]]
    assert swapped.graphs.source.num_entities == 3


def test_a_task_has_no_place_for_test_links() -> None:
    assert set(AlignmentTask.__slots__) == {"graphs", "seeds"}


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ([[2, 0]], "seeds' source entities must lie in"),
        ([[0, 3]], "seeds' target entities must lie in"),
        ([[0, 0], [0, 1]], "seeds must be one-to-one. Got 2 links of source entity 0"),
        ([[0, 1], [1, 1]], "seeds must be one-to-one. Got 2 links of target entity 1"),
    ],
)
def test_wrong_seeds_are_refused(seeds: list[list[int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AlignmentTask(GRAPHS, np.array(seeds))
