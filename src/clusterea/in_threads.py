"""`in_threads`: calls of one function at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from threading import Event
from typing import TypeVar

from clusterea.threads import available_cpus

Item = TypeVar("Item")
Result = TypeVar("Result")

_STOPS: ContextVar[tuple[Event, ...]] = ContextVar("stops", default=())  # of calls around this one


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The results of `function` for each item, in order, from as many threads as there are CPUs.

    Each call sees the caller's context variables. If calls fail, the first one's error is raised.
    After an error or an interrupt, no further call begins, also where a call uses `in_threads`.
    """
    calls = list(items)
    workers = min(len(calls), available_cpus())
    if workers < 2:
        return [function(item) for item in calls]
    own = Event()
    stops = (*_STOPS.get(), own)

    def call(item: Item) -> Result:
        if any(stop.is_set() for stop in stops):
            raise CancelledError
        _STOPS.set(stops)
        return function(item)

    with ThreadPoolExecutor(workers) as pool:
        try:
            contexts = [copy_context() for _ in calls]
            return list(pool.map(lambda context, item: context.run(call, item), contexts, calls))
        except BaseException:
            own.set()
            raise
