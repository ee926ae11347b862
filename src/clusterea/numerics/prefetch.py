"""`prefetch`: the next items of an iterator, made in a thread while the current one is used."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import nullcontext
from typing import Generic, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


class _Made(Generic[T]):
    """An item and the event that marks it ready on the device, or the error raised instead."""

    def __init__(
        self,
        item: T | None = None,
        ready: torch.cuda.Event | None = None,
        error: BaseException | None = None,
    ) -> None:
        self.item, self.ready, self.error = item, ready, error


def prefetch(
    items: Iterator[T],
    device: torch.device,
    tensors: Callable[[T], Iterable[Tensor]],
    ahead: int = 2,
) -> Generator[T, None, None]:
    """The same items in the same order, some of them made in advance.

    On a GPU they are made on another stream than the caller's. An error while making an item is
    raised when that item is due; a reader that stops early stops the thread.

    Args:
        items: Iterated in the other thread.
        device: Where the items are used.
        tensors: The tensors of an item, whose memory on the device is kept while they are used.
        ahead: How many wait. One more may be in the making.
    """
    made: queue.Queue[_Made[T]] = queue.Queue(maxsize=ahead)
    stopped = threading.Event()
    aside = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    if aside is not None:  # copies of what the items are made from may not be finished
        aside.wait_stream(torch.cuda.current_stream(device))

    def put(something: _Made[T]) -> bool:
        while not stopped.is_set():
            try:
                made.put(something, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def make() -> None:
        try:
            with torch.cuda.stream(aside) if aside is not None else nullcontext():
                for item in items:
                    if not put(_Made(item, None if aside is None else aside.record_event())):
                        return
        except BaseException as error:
            put(_Made(error=error))
        else:
            put(_Made(error=StopIteration()))

    thread = threading.Thread(target=make, name="prefetch", daemon=True)
    thread.start()
    try:
        while True:
            next_ = made.get()
            if isinstance(next_.error, StopIteration):
                return
            if next_.error is not None:
                raise next_.error
            if next_.ready is not None:
                here = torch.cuda.current_stream(device)
                here.wait_event(next_.ready)
                for tensor in tensors(next_.item):  # type: ignore[arg-type]
                    if tensor.is_cuda:
                        tensor.record_stream(here)
            yield next_.item  # type: ignore[misc]
    finally:
        stopped.set()
        thread.join()
