"""Inference: the embedding of every node from its full neighbourhood, layer by layer, in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import normalize

from clusterea.graph.expansion import incidence, whole_block
from clusterea.graph.union import UnionGraph
from clusterea.models import Encoder


@torch.no_grad()
def embed(
    encoder: Encoder, rows: Tensor, graph: UnionGraph, device: torch.device, edges_per_block: int
) -> Tensor | None:
    """(nodes, output dim) on the host, rows of unit length; None where some number is none.

    A layer is computed for all nodes before the next, so nothing is computed twice. The states of
    all layers but the last stay on the device; beyond them, a block's edges bound the memory. A
    node's edges are never cut, so the blocks don't change the result. An output of nothing but
    zeros, as GCN-Align can give, stays one.

    Args:
        encoder: The trained encoder, on the device.
        rows: (nodes, dim): the entity table, anywhere.
        graph: The union graph, on the host or on the device.
        device: Where to compute.
        edges_per_block: At most so many edges at a time, unless one node has more.
    """
    rows = rows.to(device)

    def inputs(start: int, stop: int) -> Tensor:
        block = whole_block(graph, start, stop).to(device) if encoder.reads_neighbors else None
        incident = None
        if encoder.reads_relations:
            nodes = torch.arange(start, stop, device=graph.device)
            incident = incidence(graph, nodes).to(device)
        return encoder.inputs(rows if block is not None else rows[start:stop], block, incident)

    def layer(index: int, start: int, stop: int) -> Tensor:
        return encoder.layer(index, states[index], whole_block(graph, start, stop).to(device))

    def output(start: int, stop: int) -> Tensor:
        kept = [state[start:stop] for state in states]
        return normalize(encoder.readout([*kept, layer(last, start, stop)]), dim=1)

    last = encoder.num_layers - 1
    bounds = list(_bounds(graph, edges_per_block))
    states = [_fill(bounds, inputs, device)]
    while len(states) <= last:
        states.append(_fill(bounds, partial(layer, len(states) - 1), device))
    finite = torch.ones((), dtype=torch.bool, device=device)

    def checked(start: int, stop: int) -> Tensor:
        part = output(start, stop)
        finite.logical_and_(part.isfinite().all())
        return part

    everyone = _fill(bounds, checked, torch.device("cpu"))
    return everyone if bool(finite) else None


def _fill(
    bounds: list[tuple[int, int]], compute: Callable[[int, int], Tensor], place: torch.device
) -> Tensor:
    """The results of all blocks in one tensor at `place`."""
    whole = staging = torch.empty(0)
    for start, stop in bounds:
        part = compute(start, stop)
        if start == 0:
            whole = torch.empty(bounds[-1][1], *part.shape[1:], dtype=part.dtype, device=place)
        if part.device == place:
            whole[start:stop] = part
            continue
        # Straight into ordinary memory a GPU copies at a thirtieth of its speed.
        if len(staging) < len(part):
            staging = torch.empty(part.shape, dtype=part.dtype, pin_memory=True)
        whole[start:stop] = staging[: len(part)].copy_(part)
    return whole


def _bounds(graph: UnionGraph, edges_per_block: int) -> Iterator[tuple[int, int]]:
    """Runs of nodes with at most `edges_per_block` edges and nodes, or else of one node."""
    offsets = graph.offsets.cpu()
    start = 0
    while start < graph.num_nodes:
        limit = int(offsets[start]) + edges_per_block
        stop = int(torch.searchsorted(offsets, limit, right=True)) - 1
        stop = min(max(stop, start + 1), start + edges_per_block, graph.num_nodes)
        yield start, stop
        start = stop
