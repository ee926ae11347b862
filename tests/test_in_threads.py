"""Calls at the same time: their order, their errors, and what stops them."""

from __future__ import annotations

import threading
from contextvars import ContextVar

import pytest

from clusterea import in_threads as module
from clusterea.in_threads import in_threads

ASKED: ContextVar[str] = ContextVar("asked", default="nothing")


@pytest.fixture(autouse=True, params=[1, 4])
def cpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    count: int = request.param
    monkeypatch.setattr(module, "available_cpus", lambda: count)
    return count


def test_results_are_in_order() -> None:
    assert in_threads(lambda number: number * number, range(50)) == [n * n for n in range(50)]
    assert in_threads(str, []) == []


def test_calls_run_at_the_same_time(cpus: int) -> None:
    if cpus == 1:
        pytest.skip("there is one thread")
    all_here = threading.Barrier(cpus, timeout=20)
    in_threads(lambda _: all_here.wait(), range(cpus))


def test_calls_see_the_callers_context() -> None:
    token = ASKED.set("something")
    try:
        assert in_threads(lambda _: ASKED.get(), range(3)) == ["something"] * 3
    finally:
        ASKED.reset(token)


def test_the_first_error_is_raised() -> None:
    def fail(number: int) -> None:
        raise ValueError(number)

    with pytest.raises(ValueError, match="^0$"):
        in_threads(fail, range(20))


def test_an_error_stops_what_other_calls_have_not_begun(cpus: int) -> None:
    """Also what they do in threads of their own."""
    if cpus == 1:
        pytest.skip("there is one thread")
    has_begun, has_failed = threading.Event(), threading.Event()
    done: list[int] = []

    def wait(number: int) -> None:
        has_begun.set()
        has_failed.wait(20)
        done.append(number)

    def side(name: str) -> None:
        if name == "bad":
            has_begun.wait(20)
            raise ValueError(name)
        try:
            in_threads(wait, range(1000))
        finally:
            done.append(-1)

    failing = threading.Timer(0.3, has_failed.set)
    failing.start()
    with pytest.raises(ValueError, match="bad"):
        in_threads(side, ["bad", "good"])
    assert done[-1] == -1
    assert len(done) <= 2 * cpus
