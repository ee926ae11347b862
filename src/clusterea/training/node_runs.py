"""Runs of nodes that bound the memory of whatever is computed for all nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from clusterea.graph.union import UnionGraph


def node_runs(graph: UnionGraph, edges_per_block: int) -> Iterator[tuple[int, int]]:
    """Runs of nodes with at most `edges_per_block` edges and nodes, or else of one node."""
    offsets = graph.offsets.cpu()
    start = 0
    while start < graph.num_nodes:
        limit = int(offsets[start]) + edges_per_block
        stop = int(torch.searchsorted(offsets, limit, right=True)) - 1
        stop = min(max(stop, start + 1), start + edges_per_block, graph.num_nodes)
        yield start, stop
        start = stop


def fill(
    runs: list[tuple[int, int]], compute: Callable[[int, int], Tensor], place: torch.device
) -> Tensor:
    """The results of all runs in one tensor at `place`."""
    whole = staging = torch.empty(0)
    for start, stop in runs:
        part = compute(start, stop)
        if start == 0:
            whole = torch.empty(runs[-1][1], *part.shape[1:], dtype=part.dtype, device=place)
        if part.device == place:
            whole[start:stop] = part
            continue
        # Straight into ordinary memory a GPU copies at a thirtieth of its speed.
        if len(staging) < len(part):
            staging = torch.empty(part.shape, dtype=part.dtype, pin_memory=True)
        whole[start:stop] = staging[: len(part)].copy_(part)
    return whole
