"""The time left of a run: by its plan, and by how fast it has been."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.progress import Progress

from clusterea.cli.progress import _HowFar
from clusterea.cli.time_left import PRIOR, TimeLeft
from clusterea.types import StageCost

PLAN = [("start", 2.0), ("training", 10.0), ("training", 10.0), ("fusion", 20.0), ("matching", 8.0)]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_it_is_the_plan_while_all_goes_as_planned(clock: Clock) -> None:
    left = TimeLeft(PLAN, clock)
    assert left.seconds() is None  # nothing has begun
    left.begin("training")
    assert left.seconds() == pytest.approx(48)
    clock.now += 4
    assert left.seconds() == pytest.approx(44)
    clock.now += 6
    left.end(StageCost("training", 10.0))
    assert left.seconds() == pytest.approx(38)
    left.begin("training")
    assert left.seconds() == pytest.approx(38)


def test_a_slow_stage_makes_the_others_slower_but_not_by_as_much(clock: Clock) -> None:
    left = TimeLeft(PLAN, clock)
    left.begin("training")
    clock.now += 30
    assert left.seconds() == pytest.approx(38)  # it is overdue: only the others count
    left.end(StageCost("training", 30.0))
    left.begin("training")
    whole = PRIOR * 50
    assert left.seconds() == pytest.approx(38 * (30 + whole) / (10 + whole))


def test_a_stored_result_says_nothing_about_speed(clock: Clock) -> None:
    left = TimeLeft(PLAN, clock)
    left.begin("training")
    left.end(StageCost("training", 0.01, reused=True))
    left.begin("training")
    assert left.seconds() == pytest.approx(38)


def test_stages_that_did_not_take_place_are_left_out(clock: Clock) -> None:
    left = TimeLeft(PLAN, clock)
    left.begin("fusion")
    assert left.seconds() == pytest.approx(28)


def test_a_stage_that_is_not_in_the_plan_has_no_time(clock: Clock) -> None:
    left = TimeLeft(PLAN, clock)
    left.begin("held-out names")
    assert left.seconds() is None
    left.end(StageCost("held-out names", 5.0))
    left.begin("matching")
    assert left.seconds() == pytest.approx(8)
    assert TimeLeft().seconds() is None


@given(st.lists(st.floats(0, 1e4), min_size=4, max_size=4))
def test_it_is_never_negative(taken: list[float]) -> None:
    clock = Clock()
    left = TimeLeft(PLAN, clock)
    for (label, _), seconds in zip(PLAN[1:], taken, strict=True):
        left.begin(label)
        clock.now += seconds
        now = left.seconds()
        assert now is not None
        assert now >= 0
        left.end(StageCost(label, seconds))


def test_a_bar_shows_it() -> None:
    column = _HowFar(lambda: 75.2)
    bars = Progress()
    bars.add_task("", total=None, stage="fusion", what="")
    (task,) = bars.tasks
    assert column.render(task).plain == "1:15 left of the run"
    bars.update(task.id, total=10, completed=2, what="labels")
    assert column.render(task).plain == "labels, 2 of 10, 1:15 left of the run"
    assert _HowFar(lambda: None).render(task).plain == "labels, 2 of 10"
    bars.update(task.id, total=1, completed=1, what="3 s")
    assert column.render(task).plain == "3 s"
