import pickle

import numpy as np
import pytest

from clusterea.types import AlignmentTask, Benchmark, KnowledgeGraph, Names, Pair, Texts

TASK = AlignmentTask(
    Pair(KnowledgeGraph(np.array([[0, 0, 1]]), 2, 1), KnowledgeGraph(np.array([[0, 0, 2]]), 3, 1)),
    np.array([[0, 0]]),
)
ENTITIES = Pair(Names("ab"), Names("xyz"))
RELATIONS = Pair(Names("r"), Names("s"))


def test_swap_turns_everything() -> None:
    dangling = Pair(np.array([], dtype=np.int64), np.array([1]))
    swapped = Benchmark(TASK, np.array([[1, 2]]), ENTITIES, RELATIONS, dangling).swap()
    assert swapped.test_links.tolist() == [[2, 1]]
    assert swapped.names.source[2] == "z"
    assert swapped.relation_names.source[0] == "s"
    assert swapped.dangling is not None
    assert swapped.dangling.source.tolist() == [1]


def test_names_must_match_the_graphs() -> None:
    with pytest.raises(ValueError, match="Got 3 entity names and 1 relation names"):
        Benchmark(TASK, np.array([[1, 2]]), ENTITIES.swap(), RELATIONS)


@pytest.mark.parametrize("test_links", [[[2, 1]], [[1, 3]], [[1, 1], [1, 2]]])
def test_wrong_test_links_are_refused(test_links: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="test"):
        Benchmark(TASK, np.array(test_links), ENTITIES, RELATIONS)


def test_what_was_dropped_can_not_be_changed() -> None:
    benchmark = Benchmark(TASK, np.array([[1, 2]]), ENTITIES, RELATIONS, dropped={"why": 1})
    with pytest.raises(TypeError):
        benchmark.dropped["why"] = 2  # type: ignore[index]


def test_a_test_link_of_a_seeds_entity_is_refused() -> None:
    with pytest.raises(ValueError, match="entities that no seed decides"):
        Benchmark(TASK, np.array([[0, 2]]), ENTITIES, RELATIONS)


def test_it_can_be_sent_to_another_process() -> None:
    benchmark = Benchmark(TASK, np.array([[1, 2]]), ENTITIES, RELATIONS, dropped={"why": 1})
    back = pickle.loads(pickle.dumps(benchmark))
    assert back.dropped == {"why": 1}
    assert list(back.names.target) == ["x", "y", "z"]
    assert np.array_equal(back.task.seeds, TASK.seeds)


def test_repr_tells_sizes() -> None:
    text = repr(Benchmark(TASK, np.array([[1, 2]]), ENTITIES, RELATIONS))
    assert text.startswith("Benchmark(1 seeds, 1 test links, source=KnowledgeGraph(2 entities")


class TestLabels:
    LABELS = Pair(Texts.of_lists([["A"], []]), Texts.of_lists([["X"], [], ["Z", "Zed"]]))
    BENCHMARK = Benchmark(TASK, np.array([[1, 2]]), ENTITIES, RELATIONS, labels=LABELS)

    def test_turn_with_the_sides(self) -> None:
        labels = self.BENCHMARK.swap().labels
        assert labels is not None
        assert labels.source.of(2) == ["Z", "Zed"]

    def test_are_sent_to_another_process(self) -> None:
        back = pickle.loads(pickle.dumps(self.BENCHMARK))
        assert back.labels.target.of(2) == ["Z", "Zed"]

    def test_must_match_the_graphs(self) -> None:
        with pytest.raises(ValueError, match="labels must match .* Got 3 instead"):
            Benchmark(TASK, np.array([[1, 2]]), ENTITIES, RELATIONS, labels=self.LABELS.swap())


def test_a_test_link_may_be_of_a_presumed_pair() -> None:
    task = AlignmentTask(TASK.graphs, TASK.seeds, presumed=np.array([[1, 1]]))
    benchmark = Benchmark(task, np.array([[1, 2]]), ENTITIES, RELATIONS)
    assert benchmark.test_links.tolist() == [[1, 2]]
    assert repr(benchmark).startswith("Benchmark(2 seeds, 1 test links")
