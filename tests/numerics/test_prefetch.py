"""`prefetch`: the same items, made ahead, and no thread left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from clusterea.numerics.prefetch import prefetch

CPU = torch.device("cpu")


def nothing(_: int) -> list[Tensor]:
    return []


def threads() -> int:
    return sum(thread.name == "prefetch" for thread in threading.enumerate())


def wait_until_gone() -> None:
    for _ in range(100):
        if not threads():
            return
        time.sleep(0.02)
    raise AssertionError("a thread is still there")


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_the_same_items_in_the_same_order(count: int) -> None:
    assert list(prefetch(iter(range(count)), CPU, nothing)) == list(range(count))
    wait_until_gone()


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_items_are_made_ahead_but_not_far(ahead: int) -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(20):
            made.append(number)
            yield number

    reader = prefetch(items(), CPU, nothing, ahead)
    assert next(reader) == 0
    for _ in range(100):
        if len(made) == ahead + 2:
            break
        time.sleep(0.02)
    time.sleep(0.05)
    assert len(made) == ahead + 2  # one read, some waiting, one that finds no room
    assert list(reader) == list(range(1, 20))


def test_items_are_made_in_another_thread() -> None:
    def items() -> Iterator[int]:
        yield threading.get_ident()

    assert list(prefetch(items(), CPU, nothing)) != [threading.get_ident()]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_an_error_comes_out_after_the_items_before_it(error: type[BaseException]) -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise error("no third one")

    read: list[int] = []
    with pytest.raises(error, match="no third one"):
        read.extend(prefetch(items(), CPU, nothing))
    assert read == [1, 2]
    wait_until_gone()


def test_a_reader_that_stops_stops_the_thread() -> None:
    def endless() -> Iterator[int]:
        number = 0
        while True:
            yield number
            number += 1

    reader = prefetch(endless(), CPU, nothing)
    assert [next(reader), next(reader)] == [0, 1]
    assert threads() == 1
    reader.close()
    wait_until_gone()


def test_a_reader_that_fails_stops_the_thread() -> None:
    with pytest.raises(ZeroDivisionError):
        for item in prefetch(iter(range(100)), CPU, nothing):
            1 / (item - 3)
    wait_until_gone()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_what_is_made_on_the_gpu_is_whole_when_read() -> None:
    device = torch.device("cuda")

    def items() -> Iterator[Tensor]:
        for number in range(30):
            square = torch.full((1500, 1500), 1.0, device=device)
            yield (square @ square) * number

    for number, item in enumerate(prefetch(items(), device, lambda tensor: [tensor])):
        assert float(item.max()) == float(item.min()) == 1500 * number
