"""Makes things ahead in a thread of its own, while the one before is being used."""

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
    """An item, when the device has it ready, or the error that came instead."""

    def __init__(
        self,
        item: T | None = None,
        ready: torch.cuda.Event | None = None,
        error: BaseException | None = None,
    ) -> None:
        self.item, self.ready, self.error = item, ready, error


def prefetch(
    items: Iterator[T], device: torch.device, tensors: Callable[[T], Iterable[Tensor]]
) -> Generator[T, None, None]:
    """The same items in the same order, up to two of them made before they are asked for.

    On a GPU they are made on a stream of their own, beside what the caller computes. An error while
    making one is raised where it is asked for; a reader that stops early stops the thread.

    Args:
        items: Made in the other thread.
        device: Where they will be used.
        tensors: What in an item may be on the device, so that its memory is kept while in use.
    """
    made: queue.Queue[_Made[T]] = queue.Queue(maxsize=2)
    stopped = threading.Event()
    aside = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    if aside is not None:  # what the items are made from may still be on its way
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
