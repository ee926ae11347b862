"""Block sizes for each kind of device. They affect speed and memory, never the result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# On a CPU small blocks stay in its cache; a GPU needs large ones to be busy.
BLOCK_SIZES: dict[str, dict[str, int]] = {
    "nearest": {"cpu": 1 << 21, "cuda": 1 << 30},  # cells of the matrix: 8 MB, 4 GB
    "listed": {"cpu": 1 << 23, "cuda": 1 << 30},  # likewise, in the search by lists: whole rows
    "gathered": {"cpu": 1 << 19, "cuda": 1 << 26},  # cells taken out of such a block
    "pair products": {"cpu": 1 << 18, "cuda": 1 << 26},  # numbers of vectors multiplied pairwise
    "sampled rows": {"cpu": 1 << 22, "cuda": 1 << 22},  # numbers in float64: 32 MB
    "best cells": {"cpu": 1 << 24, "cuda": 1 << 29},  # cells of a mini-batch's matrix
    "sinkhorn products": {"cpu": 1 << 26, "cuda": 1 << 26},  # cells before they are rounded
    "sinkhorn logs": {"cpu": 1 << 24, "cuda": 1 << 24},  # cells of a step on logarithms
    "sums": {"cpu": 1 << 22, "cuda": 1 << 25},  # cells of both sparse matrices that are added
    "evidence": {"cpu": 1 << 18, "cuda": 1 << 24},  # source edges
    "joined": {"cpu": 1 << 19, "cuda": 1 << 24},  # pairs of neighbors of partners
    "hardness": {"cpu": 1 << 21, "cuda": 1 << 30},  # cells of a step's matrix of gaps
    "readout": {"cpu": 3 << 16, "cuda": 1 << 28},  # numbers of one channel: 512 rows of 384
    "edges": {"cpu": 1 << 19, "cuda": 1 << 28},  # numbers in one (edges, channels, dim) tensor
    "labels": {"cpu": 1 << 20, "cuda": 1 << 28},  # edges × features
    "distances": {"cpu": 1 << 26, "cuda": 1 << 26},  # points × centers of k-means
    "rivals": {"cpu": 1 << 20, "cuda": 1 << 24},  # cells
    "matched": {"cpu": 1 << 20, "cuda": 1 << 26},  # cells
    "chosen": {"cpu": 1 << 19, "cuda": 1 << 23},  # cells that are sorted, some 60 bytes each
    "inference": {"cpu": 1 << 19, "cuda": 1 << 19},  # edges
    "sorted edges": {"cpu": 1 << 16, "cuda": 1 << 25},
}
# Bytes for each number of the blocks that are made smaller if memory is bounded. The other blocks
# without `fitting_size` are small, or their sizes change the last digits of a result.
FOLLOWING = {"gathered": 16, "sampled rows": 8, "evidence": 100, "joined": 100, "labels": 12}
FREE_SHARE = 0.25  # share of the free memory that a block may take
LEAST = 1 << 20  # fewest cells of a block, even if little memory is free
LEAST_BYTES = 1 << 26  # or fewer, if they would take more than this

_bound: ContextVar[int | None] = ContextVar("bound on host memory", default=None)


@contextmanager
def host_memory_bound(allowed: int | None) -> Iterator[None]:
    """Inside, blocks on the host are sized for a process of at most so many bytes."""
    token = _bound.set(allowed)
    try:
        yield
    finally:
        _bound.reset(token)


def block_size(name: str, device: torch.device, cell_bytes: int = 0) -> int:
    """The usual size of such a block on the device; a smaller one if its memory is bounded.

    Args:
        name: In `BLOCK_SIZES`.
        device: Where the block will be.
        cell_bytes: Memory that the work takes for each cell, if not that in `FOLLOWING`.
    """
    usual, each = BLOCK_SIZES[name][device.type], cell_bytes or FOLLOWING.get(name, 0)
    if not each or not is_bounded(device):
        return usual
    return fitting_size(name, device, each)


def fitting_size(name: str, device: torch.device, cell_bytes: int, beside: int = 0) -> int:
    """The usual size, or a smaller one if little memory is free.

    Args:
        name: In `BLOCK_SIZES`.
        device: Where the block will be.
        cell_bytes: Memory that the work takes for each cell.
        beside: Bytes that something else will take.
    """
    usual, free = BLOCK_SIZES[name][device.type], available(device)
    if free is None:
        return usual
    return min(usual, max(least_size(cell_bytes), int(FREE_SHARE * (free - beside)) // cell_bytes))


def least_size(cell_bytes: int) -> int:
    """The fewest cells of a block: one of 64 MiB at most."""
    return max(1, min(LEAST, LEAST_BYTES // cell_bytes))


def is_bounded(device: torch.device) -> bool:
    """Whether less than all memory of the device may be used."""
    if device.type != "cuda":
        return _bound.get() is not None
    import torch

    index = torch.cuda.current_device() if device.index is None else device.index
    return float(torch.cuda.get_per_process_memory_fraction(index)) < 1.0


def available(device: torch.device) -> int | None:
    """The free bytes of the device, or of the bound on its memory; None if not known."""
    if device.type == "cuda":
        import torch

        index = torch.cuda.current_device() if device.index is None else device.index
        free, total = torch.cuda.mem_get_info(index)
        taken = torch.cuda.memory_allocated(index)
        allowed = int(torch.cuda.get_per_process_memory_fraction(index) * total)
        # What the allocator has reserved but not handed out is free too.
        return min(free + torch.cuda.memory_reserved(index), allowed) - taken
    known = _amount("/proc/meminfo", "MemAvailable:")
    bound, used = _bound.get(), _amount("/proc/self/status", "VmRSS:")
    if bound is None or used is None:
        return known
    return bound - used if known is None else min(known, bound - used)


def _amount(path: str, name: str) -> int | None:
    """The bytes that a file of the system gives under this name."""
    try:
        for line in Path(path).read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None
