from typing import Any

import numpy as np
import pytest

from clusterea.types import AlignmentTask, KnowledgeGraph, Pair, Texts

GRAPHS = Pair(
    KnowledgeGraph(np.array([[0, 0, 1]]), 2, 1), KnowledgeGraph(np.array([[0, 0, 2]]), 3, 1)
)


def test_swap_turns_graphs_and_seeds() -> None:
    swapped = AlignmentTask(GRAPHS, np.array([[1, 2]])).swap()
    assert swapped.seeds.tolist() == [[2, 1]]
    assert swapped.graphs.source.num_entities == 3


def test_without_leaves_out_only_these_pairs() -> None:
    task = AlignmentTask(
        GRAPHS,
        np.array([[0, 0]]),
        presumed=np.array([[1, 1]]),
        rejected=np.array([[0, 1], [1, 0], [1, 2]]),
    )
    left = task.without(np.array([[0, 0], [1, 2]]), np.array([[1, 0]]))
    assert left.seeds.tolist() == []
    assert left.presumed.tolist() == [[1, 1]]
    assert left.rejected.tolist() == [[0, 1], [1, 2]]
    assert task.without(np.array([[1, 1]]), left.seeds).presumed.tolist() == []


def test_a_task_has_no_place_for_test_links() -> None:
    stated = {"graphs", "seeds", "keys", "structural"}
    stated |= {"presumed", "names", "features", "rejected", "alone", "chosen"}
    assert set(AlignmentTask.__slots__) == stated | {"__weakref__"}


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


class TestStructural:
    """Entities that carry structure and are never linked."""

    IDS = Pair(np.array([1]), np.array([2, 0, 2]))

    def test_are_sorted_and_turn_with_the_sides(self) -> None:
        task = AlignmentTask(GRAPHS, np.array([[0, 1]]), structural=self.IDS)
        assert task.structural.map(lambda side: side.tolist()) == Pair([1], [0, 2])
        assert task.swap().structural.map(lambda side: side.tolist()) == Pair([0, 2], [1])
        fewer = task.with_seeds(task.seeds[:0])
        assert fewer.structural.map(lambda side: side.tolist()) == Pair([1], [0, 2])

    def test_are_no_more_undecided_than_seeds(self) -> None:
        task = AlignmentTask(GRAPHS, np.array([[0, 1]]), structural=self.IDS)
        assert task.num_undecided == Pair(0, 0)
        assert AlignmentTask(GRAPHS, np.array([[0, 1]])).num_undecided == Pair(1, 2)

    def test_no_seed_may_have_one(self) -> None:
        with pytest.raises(ValueError, match="structural entities are never linked"):
            AlignmentTask(GRAPHS, np.array([[0, 2]]), structural=self.IDS)

    def test_must_be_entities(self) -> None:
        with pytest.raises(ValueError, match="structural must lie in"):
            AlignmentTask(
                GRAPHS, np.array([[0, 2]]), structural=Pair(np.array([2]), np.array([], int))
            )


class TestKeys:
    KEYS = Pair(np.array([7, -3]), np.array([5, 5, 2**62]))

    def test_are_what_was_given_and_turn_with_the_sides(self) -> None:
        task = AlignmentTask(GRAPHS, np.array([[1, 2]]), self.KEYS)
        assert task.tie_keys.source.tolist() == [7, -3]
        assert task.swap().tie_keys.source.tolist() == [5, 5, 2**62]
        assert task.swap().swap().tie_keys.target.tolist() == [5, 5, 2**62]

    def test_without_names_an_entity_s_number_decides(self) -> None:
        keys = AlignmentTask(GRAPHS, np.array([[1, 2]])).tie_keys
        assert [side.tolist() for side in keys] == [[0, 1], [0, 1, 2]]

    def test_can_not_be_changed(self) -> None:
        task = AlignmentTask(GRAPHS, np.array([[1, 2]]), self.KEYS)
        with pytest.raises(ValueError, match="read-only"):
            task.tie_keys.source[0] = 1
        assert self.KEYS.source.flags.writeable  # the caller's own still can

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            (Pair(np.arange(2), np.arange(2)), "keys must be one for each entity. Got 2 for"),
            (Pair(np.arange(3), np.arange(3)), "keys must be one for each entity. Got 3 for"),
            (Pair(np.ones(2), np.ones(3)), "keys must hold integers. Got float64"),
        ],
    )
    def test_wrong_ones_are_refused(self, keys: Pair[Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            AlignmentTask(GRAPHS, np.array([[1, 2]]), keys)


class TestPresumed:
    """Pairs of equal names: seeds for learning, but no decisions."""

    def test_are_seeds_that_decide_nothing(self) -> None:
        task = AlignmentTask(GRAPHS, np.array([[0, 1]]), presumed=np.array([[1, 2]]))
        assert task.all_seeds.tolist() == [[0, 1], [1, 2]]
        assert task.num_seeds == 1
        assert task.num_undecided == Pair(1, 2)
        assert repr(task).startswith("AlignmentTask(1 seeds, 1 presumed, source=")

    def test_turn_with_the_sides_and_are_put_in_order(self) -> None:
        keys = Pair(np.array([9, 1]), np.arange(3))
        task = AlignmentTask(
            GRAPHS, np.empty((0, 2), int), keys, presumed=np.array([[0, 1], [1, 2]])
        )
        assert task.swap().presumed.tolist() == [[1, 0], [2, 1]]
        assert task.in_order().presumed.tolist() == [[1, 2], [0, 1]]
        assert not len(task.with_seeds(task.presumed).presumed)

    @pytest.mark.parametrize(
        ("presumed", "message"),
        [
            ([[2, 0]], "presumed' source entities must lie in"),
            ([[1, 3]], "presumed' target entities must lie in"),
            ([[0, 2]], "seeds must be one-to-one. Got 2 links of source entity 0"),
            ([[1, 1]], "seeds must be one-to-one. Got 2 links of target entity 1"),
            ([[1, 0]], "structural entities are never linked"),
        ],
    )
    def test_wrong_ones_are_refused(self, presumed: list[list[int]], message: str) -> None:
        never = Pair(np.array([], int), np.array([0]))
        with pytest.raises(ValueError, match=message):
            AlignmentTask(GRAPHS, np.array([[0, 1]]), structural=never, presumed=np.array(presumed))


class TestContents:
    """Names and features of the entities."""

    NAMES = Pair(["a", "b"], ["x", "y", "z"]).map(lambda side: Texts.of_lists([[t] for t in side]))
    FEATURES = Pair(np.zeros((2, 4), np.float32), np.ones((3, 4), np.float32))

    def test_turn_with_the_sides_and_stay_with_other_seeds(self) -> None:
        task = AlignmentTask(GRAPHS, np.array([[0, 1]]), names=self.NAMES, features=self.FEATURES)
        turned = task.swap().with_seeds(np.array([[2, 1]]))
        assert turned.names is not None
        assert turned.names.source.of(2) == ["z"]
        assert turned.features is not None
        assert turned.features.source.shape == (3, 4)

    def test_must_be_of_these_entities(self) -> None:
        for wrong in ({"names": self.NAMES.swap()}, {"features": self.FEATURES.swap()}):
            [what] = wrong
            with pytest.raises(ValueError, match=f"{what} must be one for each entity. Got 3 for"):
                AlignmentTask(GRAPHS, np.array([[0, 1]]), **wrong)
