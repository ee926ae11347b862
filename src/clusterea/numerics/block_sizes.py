"""Block sizes for each kind of device. They affect speed and memory, never the result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# On a CPU small blocks stay in its cache; a GPU needs large ones to be busy.
BLOCK_SIZES: dict[str, dict[str, int]] = {
    "nearest": {"cpu": 1 << 25, "cuda": 1 << 30},  # cells of the matrix: 128 MB, 4 GB
    "gathered": {"cpu": 1 << 22, "cuda": 1 << 26},  # cells taken out of such a block
    "pair products": {"cpu": 1 << 18, "cuda": 1 << 26},  # numbers of vectors multiplied pairwise
    "best cells": {"cpu": 1 << 24, "cuda": 1 << 29},  # cells of a mini-batch's matrix
    "sinkhorn products": {"cpu": 1 << 26, "cuda": 1 << 26},  # cells before they are rounded
    "sinkhorn logs": {"cpu": 1 << 24, "cuda": 1 << 24},  # cells of a step on logarithms
    "sums": {"cpu": 1 << 24, "cuda": 1 << 25},  # cells of both sparse matrices that are added
    "evidence": {"cpu": 1 << 22, "cuda": 1 << 24},  # source edges
    "joined": {"cpu": 1 << 21, "cuda": 1 << 24},  # pairs of neighbors of partners
    "edges": {"cpu": 1 << 20, "cuda": 1 << 28},  # numbers in one (edges, channels, dim) tensor
    "labels": {"cpu": 1 << 23, "cuda": 1 << 28},  # edges × features
    "distances": {"cpu": 1 << 26, "cuda": 1 << 26},  # points × centers of k-means
    "rivals": {"cpu": 1 << 20, "cuda": 1 << 24},  # cells
}
FREE_SHARE = 0.25  # share of the free memory that a block may take
LEAST = 1 << 20  # fewest cells of a block, even if little memory is free


def block_size(name: str, device: torch.device) -> int:
    """The usual size of such a block on the device."""
    return BLOCK_SIZES[name][device.type]


def fitting_size(name: str, device: torch.device, cell_bytes: int, beside: int = 0) -> int:
    """The usual size, or a smaller one if little memory is free.

    Args:
        name: In `BLOCK_SIZES`.
        device: Where the block will be.
        cell_bytes: Memory that the work takes for each cell.
        beside: Bytes that something else will take.
    """
    usual, free = block_size(name, device), available(device)
    if free is None:
        return usual
    return min(usual, max(LEAST, int(FREE_SHARE * (free - beside)) // cell_bytes))


def available(device: torch.device) -> int | None:
    """The free bytes of the device; None if the system does not tell."""
    if device.type == "cuda":
        import torch

        index = torch.cuda.current_device() if device.index is None else device.index
        free, total = torch.cuda.mem_get_info(index)
        taken = torch.cuda.memory_allocated(index)
        allowed = int(torch.cuda.get_per_process_memory_fraction(index) * total)
        # What the allocator has reserved but not handed out is free too.
        return min(free + torch.cuda.memory_reserved(index), allowed) - taken
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None
