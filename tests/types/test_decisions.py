"""What holds after answers, and what decisions do to seeds, presumed pairs and test links."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterea.types import AlignmentTask, Answer, Benchmark, Decisions, KnowledgeGraph, Names, Pair

GRAPHS = Pair(*(KnowledgeGraph(np.array([[0, 0, 5]]), 6, 1) for _ in range(2)))


def decided(*answers: tuple[int | None, int | None, str]) -> tuple[object, ...]:
    found = Decisions.of(Answer(s, t, v) for s, t, v in answers)  # type: ignore[arg-type]
    return (
        found.accepted.tolist(),
        found.rejected.tolist(),
        *found.alone.map(lambda ids: ids.tolist()),
    )


class TestOf:
    def test_each_kind(self) -> None:
        answers = [(0, 0, "same"), (1, 1, "different"), (2, None, "none"), (None, 3, "none")]
        assert decided(*answers) == ([[0, 0]], [[1, 1]], [2], [3])

    @pytest.mark.parametrize("last", ["unsure", "undone"])
    def test_the_last_answer_counts(self, last: str) -> None:
        assert decided((0, 0, "same"), (0, 0, "different")) == ([], [[0, 0]], [], [])
        assert decided((0, 0, "different"), (0, 0, "same")) == ([[0, 0]], [], [], [])
        assert decided((0, 0, "same"), (0, 0, last)) == ([], [], [], [])
        assert decided((0, 0, "different"), (0, 0, last)) == ([], [], [], [])
        assert decided((0, None, "none"), (0, None, last)) == ([], [], [], [])

    def test_an_entity_has_one_counterpart(self) -> None:
        assert decided((0, 0, "same"), (0, 1, "same")) == ([[0, 1]], [], [], [])
        assert decided((0, 1, "same"), (2, 1, "same")) == ([[2, 1]], [], [], [])
        assert decided((0, 0, "same"), (1, 1, "same"), (0, 1, "same")) == ([[0, 1]], [], [], [])
        assert decided((0, 0, "same"), (0, None, "none")) == ([], [], [0], [])
        assert decided((None, 0, "none"), (0, 0, "same")) == ([[0, 0]], [], [], [])

    def test_taking_back_another_pair_changes_nothing(self) -> None:
        assert decided((0, 0, "same"), (0, 1, "undone")) == ([[0, 0]], [], [], [])
        assert decided((0, 0, "same"), (0, 1, "different")) == ([[0, 0]], [[0, 1]], [], [])

    @given(
        st.lists(
            st.tuples(
                st.integers(0, 3),
                st.integers(0, 3),
                st.sampled_from(["same", "different", "unsure", "undone"]),
            )
        )
    )
    def test_pairs_against_the_obvious_rule(self, answers: list[tuple[int, int, str]]) -> None:
        """A pair is rejected if its last answer says so; accepted if no later one contradicts."""
        accepted, rejected, *_ = decided(*answers)
        last = {(s, t): verdict for s, t, verdict in answers}
        assert sorted(rejected) == sorted(  # type: ignore[call-overload]
            [*pair] for pair, verdict in last.items() if verdict == "different"
        )
        wanted = []
        for at, (source, target, verdict) in enumerate(answers):
            later = answers[at + 1 :]
            is_replaced = any(
                (s, t) == (source, target) or (v == "same" and (s == source or t == target))
                for s, t, v in later
            )
            if verdict == "same" and not is_replaced:
                wanted.append([source, target])
        assert sorted(accepted) == sorted(wanted)  # type: ignore[call-overload]

    def test_answers_to_random_questions_are_not_chosen(self) -> None:
        def chosen(*answers: Answer) -> list[list[int]]:
            found: list[list[int]] = Decisions.of(answers).chosen.tolist()
            return found

        yes, no = Answer(0, 0, "same"), Answer(1, 2, "different")
        assert chosen(yes, no) == [[0, 0], [1, 2]]
        assert chosen(replace(yes, is_random=True), no) == [[1, 2]]
        assert chosen(replace(no, is_random=True), yes, no) == [[0, 0], [1, 2]]  # the last counts
        assert chosen(yes, Answer(0, 0, "undone"), no) == [[1, 2]]
        assert chosen(Answer(3, None, "none")) == []

    def test_an_answer_needs_an_entity(self) -> None:
        with pytest.raises(ValueError, match="about an entity"):
            Answer(None, None, "none")
        with pytest.raises(ValueError, match="about two entities"):
            Answer(None, 1, "same")


def task(**more: Any) -> AlignmentTask:
    seeds = np.array([[0, 0], [1, 1]])
    return replace(AlignmentTask(GRAPHS, seeds, presumed=np.array([[2, 2], [3, 3]])), **more)


class TestTask:
    def test_accepted_pairs_are_seeds(self) -> None:
        found = task().with_decisions(Decisions.of([Answer(4, 5, "same"), Answer(2, 2, "same")]))
        assert found.seeds.tolist() == [[0, 0], [1, 1], [4, 5], [2, 2]]
        assert found.presumed.tolist() == [[3, 3]]

    def test_decisions_count_more_than_seeds(self) -> None:
        answers = [Answer(0, 4, "same"), Answer(1, 1, "different"), Answer(3, None, "none")]
        found = task().with_decisions(Decisions.of(answers))
        assert found.seeds.tolist() == [[0, 4]]
        assert found.presumed.tolist() == [[2, 2]]
        assert found.rejected.tolist() == [[1, 1]]
        assert found.alone.source.tolist() == [3]
        assert found.never_linked.source.tolist() == [3]
        assert found.num_undecided == Pair(4, 5)
        turned = found.swap()
        assert turned.rejected.tolist() == [[1, 1]]
        assert found.chosen.tolist() == turned.chosen[:, ::-1].tolist() != []
        assert turned.alone.target.tolist() == [3]

    def test_structural_entities_stay_unlinked(self) -> None:
        given_ = task(structural=Pair(np.array([4]), np.array([5])))
        answers = [Answer(4, 4, "same"), Answer(5, 5, "same"), Answer(4, None, "none")]
        found = given_.with_decisions(Decisions.of(answers))
        assert found.seeds.tolist() == [[0, 0], [1, 1]]
        assert not any(map(len, found.alone))

    def test_no_seed_may_be_alone(self) -> None:
        with pytest.raises(ValueError, match="alone have no counterpart, so no seed"):
            task(alone=Pair(np.array([1]), np.array([], np.int64)))


def test_test_links_of_accepted_pairs_are_left_out() -> None:
    names = Pair(*(Names(map(str, range(6))) for _ in range(2)))
    relations = Pair(Names(["r"]), Names(["r"]))
    given_ = Benchmark(
        AlignmentTask(GRAPHS, np.array([[0, 0]])),
        np.array([[1, 1], [2, 2], [3, 3], [4, 4]]),
        names,
        relations,
        seeds_from={"links": 1},
    )
    answers = [Answer(1, 1, "same"), Answer(2, 5, "same"), Answer(3, 3, "different")]
    found = given_.with_decisions(Decisions.of([*answers, Answer(4, None, "none")]))
    assert found.test_links.tolist() == [[3, 3], [4, 4]]
    assert found.dropped == {"test links of entities that answers decide": 2}
    assert found.seeds_from == {"links": 1, "answers": 2}
