"""The steps of an epoch: every seed once, negatives that no seed decides."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clusterea.config import TrainingConfig
from clusterea.training.steps import MOST_REJECTED, Schedule, Step
from clusterea.types import AlignmentTask, KnowledgeGraph, Pair

SOURCES, TARGETS = 40, 30


def task(seeds: int, *, sources: int = SOURCES, targets: int = TARGETS) -> AlignmentTask:
    rng = np.random.default_rng(1)
    links = np.stack([rng.permutation(sources)[:seeds], rng.permutation(targets)[:seeds]], 1)
    none = np.empty((0, 3), dtype=np.int64)
    sides = Pair(KnowledgeGraph(none, sources, 0), KnowledgeGraph(none, targets, 0))
    return AlignmentTask(sides, links)


def config(**changes: int | str | None) -> TrainingConfig:
    return replace(
        TrainingConfig(seeds_per_step=4, negatives_per_step=5, negatives_per_seed=3),
        **changes,  # type: ignore[arg-type]
    )


def nodes_at(step: Step, places: torch.Tensor) -> list[int]:
    """The nodes that some places of a step mean."""
    found = places if step.nodes is None else step.nodes[places]
    return [int(node) for node in found]


def seeds_of(step: Step, sources: int = SOURCES) -> list[tuple[int, int]]:
    targets = [node - sources for node in nodes_at(step, step.target)]
    return list(zip(nodes_at(step, step.source), targets, strict=True))


def same(one: Step, other: Step) -> bool:
    def equal(left: torch.Tensor | None, right: torch.Tensor | None) -> bool:
        if left is None or right is None:
            return left is right
        return torch.equal(left, right)

    return all(equal(getattr(one, name), getattr(other, name)) for name in Step.__slots__)


class TestEverySeedOnce:
    @given(
        st.integers(1, 20),
        st.none() | st.integers(1, 25),
        st.sampled_from(["nhsm", "margin"]),
        st.sampled_from([None, 8]),
        st.sampled_from([None, 6]),
    )
    def test_an_epoch(
        self, seeds: int, size: int | None, loss: str, fanout: int | None, negatives: int | None
    ) -> None:
        given_task = task(seeds)
        schedule = Schedule(
            given_task,
            config(seeds_per_step=size, loss=loss, fanout=fanout, negatives_per_step=negatives),
        )
        for epoch in (0, 3):
            steps = list(schedule.steps(epoch))
            assert len(steps) == schedule.steps_in_epoch
            sizes = [len(step.source) for step in steps]
            assert all(count == (size or seeds) for count in sizes[:-1])
            met = Counter(pair for step in steps for pair in seeds_of(step))
            assert met == Counter((s, t) for s, t in given_task.seeds.tolist())

    def test_epochs_are_shuffled(self) -> None:
        schedule = Schedule(task(20), config())
        first, second = ([seeds_of(step) for step in schedule.steps(epoch)] for epoch in (0, 1))
        assert first != second


class TestNhsm:
    def test_negatives(self) -> None:
        given_task = task(12)
        sources, targets = (set(column.tolist()) for column in given_task.seeds.T)
        for epoch in range(5):
            for step in Schedule(given_task, config()).steps(epoch):
                assert step.nodes is not None
                assert step.source_negatives is step.target_negatives is None
                nodes = step.nodes.tolist()
                assert len(set(nodes)) == len(nodes) == 2 * 4 + 2 * 5
                of_source, of_target = nodes[8:13], nodes[13:]
                assert all(node < SOURCES and node not in sources for node in of_source)
                assert all(
                    SOURCES <= node < SOURCES + TARGETS and node - SOURCES not in targets
                    for node in of_target
                )

    def test_negatives_are_drawn_anew_and_from_everywhere(self) -> None:
        schedule = Schedule(task(12), config())
        drawn = [
            step.nodes[8:]
            for epoch in range(40)
            for step in schedule.steps(epoch)
            if step.nodes is not None
        ]
        assert len({tuple(sorted(some.tolist())) for some in drawn}) > 100  # of 120
        counts = torch.cat(drawn).bincount(minlength=SOURCES + TARGETS)
        assert (counts > 0).sum() == SOURCES + TARGETS - 2 * 12
        # 120 draws of 5 among 28 and among 18: means of 21 and 33 each.
        assert counts[counts > 0].min() >= 8

    def test_a_small_pool_gives_all_it_has(self) -> None:
        given_task = task(28)
        (step, *_) = Schedule(given_task, config(negatives_per_step=9)).steps(0)
        assert step.nodes is not None
        free = set(range(SOURCES)) - set(given_task.seeds[:, 0].tolist())
        assert len(free) == 12
        assert set(step.nodes[8:17].tolist()) < free
        others = set(range(TARGETS)) - set(given_task.seeds[:, 1].tolist())
        assert set(step.nodes[17:].tolist()) == {other + SOURCES for other in others}
        assert len(others) == 2

    def test_an_empty_pool_gives_nothing(self) -> None:
        (step,) = Schedule(task(6, sources=6, targets=6), config(seeds_per_step=0)).steps(0)
        assert step.nodes is not None
        assert sorted(step.nodes.tolist()) == list(range(12))

    def test_every_entity(self) -> None:
        (step, *_) = Schedule(task(8), config(negatives_per_step=0)).steps(0)
        assert step.nodes is None


class TestMargin:
    @pytest.mark.parametrize("fanout", [None, 8])
    def test_negatives(self, fanout: int | None) -> None:
        schedule = Schedule(task(12), config(loss="margin", fanout=fanout))
        for step in schedule.steps(0):
            assert (step.nodes is None) == (fanout is None)
            for places in (step.source_negatives, step.target_negatives):
                assert places is not None
                nodes = nodes_at(step, places)
                assert len(nodes) == 4 * 3
                assert all(0 <= node < SOURCES + TARGETS for node in nodes)

    def test_both_ways_of_naming_nodes_mean_the_same(self) -> None:
        steps = [
            list(Schedule(task(12), config(loss="margin", fanout=fanout)).steps(2))
            for fanout in (None, 8)
        ]
        for one, other in zip(*steps, strict=True):
            for name in ("source", "target", "source_negatives", "target_negatives"):
                assert nodes_at(one, getattr(one, name)) == nodes_at(other, getattr(other, name))

    def test_epochs_steps_and_sides_draw_negatives_of_their_own(self) -> None:
        schedule = Schedule(task(12), config(loss="margin"))
        drawn = []
        for step in (step for epoch in (0, 1) for step in schedule.steps(epoch)):
            for places in (step.source_negatives, step.target_negatives):
                assert places is not None
                drawn.append(tuple(nodes_at(step, places)))
        assert len(set(drawn)) == 2 * 3 * 2

    def test_with_all_seeds_in_one_step_epochs_are_not_shuffled(self) -> None:
        schedule = Schedule(task(12), config(loss="margin", seeds_per_step=None))
        first, second = (next(iter(schedule.steps(epoch))) for epoch in (0, 1))
        assert seeds_of(first) == seeds_of(second)


@pytest.mark.parametrize("loss", ["nhsm", "margin"])
class TestRepeatable:
    def test_the_seed_decides(self, loss: str) -> None:
        one, again, other = (
            list(Schedule(task(12), config(loss=loss, seed=seed)).steps(1)) for seed in (1, 1, 2)
        )
        assert all(map(same, one, again))
        assert not any(map(same, one, other))

    def test_what_came_before_does_not(self, loss: str) -> None:
        schedule = Schedule(task(12), config(loss=loss))
        for epoch in range(3):
            list(schedule.steps(epoch))
        fresh = Schedule(task(12), config(loss=loss))
        assert all(map(same, schedule.steps(3), fresh.steps(3)))


class TestRejected:
    REJECTED = np.array([[3, 4], [5, 6], [3, 7]])

    @pytest.mark.parametrize(
        "changes",
        [{}, {"negatives_per_step": None}, {"loss": "margin"}, {"loss": "margin", "fanout": None}],
    )
    def test_each_step_has_them(self, changes: dict[str, int | str | None]) -> None:
        given, own = task(9), config(**changes)
        plain = list(Schedule(given, own).steps(0))
        found = list(Schedule(replace(given, rejected=self.REJECTED), own).steps(0))
        assert len(found) == len(plain)
        for step, before in zip(found, plain, strict=True):
            assert step.rejected is not None
            ends = np.array(nodes_at(step, step.rejected.flatten())).reshape(-1, 2)
            pairs = sorted((ends - [0, SOURCES]).tolist())
            assert pairs == sorted(self.REJECTED.tolist())
            count = 0 if step.nodes is None else -self.REJECTED.size
            nodes = None if step.nodes is None else step.nodes[:count]
            assert same(replace(step, nodes=nodes, rejected=None), before)

    def test_many_are_drawn_anew_in_each_step(self) -> None:
        rejected = np.array([[i, j] for i in range(SOURCES) for j in range(TARGETS)])
        first, second = list(Schedule(replace(task(8), rejected=rejected), config()).steps(0))[:2]
        assert first.rejected is not None
        assert second.rejected is not None
        assert len(first.rejected) == len(second.rejected) == MOST_REJECTED
        drawn = [nodes_at(each, each.rejected.flatten()) for each in (first, second)]  # type: ignore[union-attr]
        assert drawn[0] != drawn[1]
