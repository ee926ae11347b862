"""Runs of consecutive nodes, to compute something for all nodes in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from clusterea.numerics.copies import host_copies


def node_runs(offsets: Tensor, edges_per_block: int) -> Iterator[tuple[int, int]]:
    """Runs with at most `edges_per_block` edges and as many nodes; one node may have more edges.

    Args:
        offsets: (nodes + 1,): where the edges of each node begin.
        edges_per_block: The most edges of a run, and the most nodes.
    """
    offsets, num_nodes = offsets.cpu().long(), len(offsets) - 1
    start = 0
    while start < num_nodes:
        limit = int(offsets[start]) + edges_per_block
        stop = int(torch.searchsorted(offsets, limit, right=True)) - 1
        stop = min(max(stop, start + 1), start + edges_per_block, num_nodes)
        yield start, stop
        start = stop


def fill(
    runs: list[tuple[int, int]], compute: Callable[[int, int], Tensor], device: torch.device
) -> Tensor:
    """The results of all runs in one tensor on the device."""
    whole = torch.empty(0)
    with host_copies() as copies:
        for start, stop in runs:
            part = compute(start, stop)
            if start == 0:
                shape = runs[-1][1], *part.shape[1:]
                whole = torch.empty(shape, dtype=part.dtype, device=device)
            copies.put(whole[start:stop], part)
    return whole
