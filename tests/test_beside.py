from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from contextvars import ContextVar

import pytest

from clusterea.beside import Beside, in_order

CHOICE: ContextVar[str] = ContextVar("choice", default="none")


def fail(message: str) -> None:
    raise OSError(message)


class TestBeside:
    def test_functions_run_beside_the_block(self) -> None:
        met = threading.Event()
        with Beside() as beside:
            found = beside.start(met.wait, 60)
            met.set()
        assert found.result()

    def test_the_block_ends_when_all_have_and_tells_the_first_error(self) -> None:
        done: list[int] = []
        with pytest.raises(OSError, match="first"), Beside() as beside:
            beside.start(fail, "first")
            for number in range(30):
                beside.start(done.append, number)
            beside.start(fail, "second")
        assert sorted(done) == list(range(30))

    def test_waiting_tells_it_inside_the_block(self) -> None:
        with Beside() as beside:
            beside.start(fail, "first")
            with pytest.raises(OSError, match="first"):
                beside.wait()
            beside._begun.clear()

    @pytest.mark.parametrize(("error", "last"), [(ValueError, [1]), (KeyboardInterrupt, [])])
    def test_an_error_of_the_block_comes_first(
        self, error: type[BaseException], last: list[int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Only an interrupt keeps functions from beginning."""
        monkeypatch.setattr("clusterea.beside.available_cpus", lambda: 1)
        held = threading.Event()
        done: list[int] = []
        with pytest.raises(error, match="block"), Beside() as beside:
            beside.start(held.wait, 60)
            beside.start(fail, "thread")
            beside.start(done.append, 1)
            threading.Timer(0.2, held.set).start()
            raise error("block")
        assert done == last

    def test_context_variables_hold_in_the_threads(self) -> None:
        token = CHOICE.set("mine")
        with Beside() as beside:
            found = beside.start(CHOICE.get)
            assert list(in_order(lambda _: CHOICE.get(), [1], 1)) == ["mine"]
        CHOICE.reset(token)
        assert found.result() == "mine"


class TestInOrder:
    @pytest.mark.parametrize("threads", [1, 3])
    def test_results_keep_the_order_of_the_items(self, threads: int) -> None:
        passed = [threading.Event() for _ in range(20)]

        def make(item: int) -> int:
            if threads > 1 and item % 2 == 0 and item + 1 < len(passed):
                passed[item + 1].wait(60)  # the next one ends before it
            passed[item].set()
            return item

        assert list(in_order(make, range(20), threads)) == list(range(20))

    def test_items_are_taken_only_as_they_are_needed(self) -> None:
        taken = []

        def items() -> Iterator[int]:
            for item in range(100):
                taken.append(item)
                yield item

        with closing(in_order(str, items(), 2)) as results:
            assert next(results) == "0"
            assert len(taken) == 3
        assert len(taken) == 3

    def test_an_error_comes_in_its_place(self) -> None:
        found = []
        with closing(in_order(lambda item: 1 // item, [1, 1, 0, 1], 2)) as results:
            found += [next(results), next(results)]
            with pytest.raises(ZeroDivisionError):
                next(results)
        assert found == [1, 1]
