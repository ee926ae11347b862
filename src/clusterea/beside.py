"""Threads for work that does not hold Python's lock: Arrow, compression, files, and a GPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from types import TracebackType
from typing import Any, TypeVar

from clusterea.threads import available_cpus

Item = TypeVar("Item")
Made = TypeVar("Made")


class Beside:
    """Runs functions in threads beside a block, at most one on each CPU.

    The block ends when all of them have; only if it is interrupted, those that have not begun never
    do. If the block raises an error, those of the functions are not raised.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(available_cpus())
        self._begun: list[Future[Any]] = []

    def __enter__(self) -> Beside:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        is_interrupted = error is not None and not isinstance(error, Exception)
        self._pool.shutdown(cancel_futures=is_interrupted)
        if error is None:
            self.wait()

    def start(self, do: Callable[..., Made], *arguments: Any) -> Future[Made]:
        """Begins a function in a thread, with the context variables of this one."""
        future = self._pool.submit(copy_context().run, do, *arguments)
        self._begun.append(future)
        return future

    def wait(self) -> None:
        """Waits for all functions. Raises the first error, in the order in which they began."""
        for each in self._begun:
            each.exception()
        for each in self._begun:
            each.result()


def in_order(
    make: Callable[[Item], Made], items: Iterable[Item], threads: int
) -> Generator[Made, None, None]:
    """The results for each item, in order, made in threads. One more than these may be ahead.

    Close it (`contextlib.closing`) if not all results are taken.
    """
    with ThreadPoolExecutor(threads) as pool:
        ahead: deque[Future[Made]] = deque()
        try:
            for item in items:
                ahead.append(pool.submit(copy_context().run, make, item))
                if len(ahead) > threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
