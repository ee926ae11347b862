"""Copies between the host and a GPU, through pinned memory and beside other work.

A GPU copies to and from pinned memory many times as fast as to and from ordinary memory, and the
program goes on meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import torch
from torch import Tensor

PIECE = 1 << 25  # bytes that are copied at a time
BUFFERS = 2  # one is filled while the other is emptied


class HostCopies:
    """Copies parts of a result from a GPU to the host; see `host_copies`."""

    def __init__(self) -> None:
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="copies")
        self._begun: deque[Future[Tensor]] = deque()  # each returns its pinned memory

    def put(self, place: Tensor, part: Tensor) -> None:
        """Copies a part to its place, a contiguous tensor of the same shape and type."""
        if part.device.type != "cuda" or place.device.type == "cuda":
            place.copy_(part)
            return
        pinned = torch.empty(0, dtype=part.dtype)
        if len(self._begun) == BUFFERS:
            pinned = self._begun.popleft().result()
        if pinned.numel() < part.numel() or pinned.dtype != part.dtype:
            pinned = torch.empty(part.numel(), dtype=part.dtype, pin_memory=True)
        staged = pinned[: part.numel()].view(part.shape).copy_(part, non_blocking=True)
        arrived = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
        arrived.record(torch.cuda.current_stream(part.device))

        def copied() -> Tensor:
            arrived.synchronize()
            place.copy_(staged)
            return pinned

        self._begun.append(self._beside.submit(copied))

    def finish(self) -> None:
        """Waits for the copies. Raises if one has failed."""
        while self._begun:
            self._begun.popleft().result()

    def close(self) -> None:
        """Waits for the copies, and ends."""
        self._beside.shutdown()


@contextmanager
def host_copies() -> Iterator[HostCopies]:
    """Copies from a GPU that have arrived when the block ends. Elsewhere they are made at once."""
    copies = HostCopies()
    try:
        yield copies
        copies.finish()
    finally:
        copies.close()


def on_host(tensor: Tensor) -> Tensor:
    """The same on the host; itself if it is there."""
    if tensor.device.type != "cuda":
        return tensor.cpu()
    result = torch.empty(tensor.shape, dtype=tensor.dtype)
    step = PIECE // tensor.element_size()
    places = torch.split(result.view(-1), step)
    with host_copies() as copies:
        for place, part in zip(places, torch.split(tensor.reshape(-1), step), strict=True):
            copies.put(place, part)
    return result


def rows_on(
    device: torch.device, table: Tensor, rows: Tensor, at_once: int
) -> Iterator[tuple[slice, Tensor]]:
    """Some rows of a table on a device, in parts: which of the rows, and these rows.

    Args:
        device: Where to.
        table: (…, dim), anywhere.
        rows: Numbers of rows.
        at_once: Rows of a part.
    """
    parts = [slice(start, start + at_once) for start in range(0, len(rows), at_once)]
    if device.type != "cuda" or table.device.type != "cpu":
        for part in parts:
            yield part, table.index_select(0, rows[part].to(table.device)).to(device)
        return
    rows, shape = rows.cpu(), (min(at_once, len(rows)), *table.shape[1:])
    buffers = [torch.empty(shape, dtype=table.dtype, pin_memory=True) for _ in parts[:BUFFERS]]
    left = [torch.cuda.Event(blocking=True) for _ in buffers]  # type: ignore[no-untyped-call]
    for number, part in enumerate(parts):
        buffer, sent = buffers[number % BUFFERS], left[number % BUFFERS]
        sent.synchronize()
        chosen = rows[part]
        taken = buffer[: len(chosen)]
        torch.index_select(table, 0, chosen, out=taken)
        moved = taken.to(device, non_blocking=True)
        sent.record(torch.cuda.current_stream(device))
        yield part, moved
