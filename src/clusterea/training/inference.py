"""Inference: the embedding of every node from its full neighborhood, layer by layer, in blocks."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import normalize

from clusterea.graph.expansion import incidence, whole_block
from clusterea.graph.union import UnionGraph
from clusterea.models import Encoder
from clusterea.numerics.block_sizes import block_size
from clusterea.numerics.products import vector_type
from clusterea.training.node_runs import fill, node_runs

NODE_COPIES = 8  # of a node's output that are in memory at a time


@torch.no_grad()
def embed(
    encoder: Encoder,
    rows: Tensor,
    graph: UnionGraph,
    device: torch.device,
    edges_per_block: int | None = None,
) -> Tensor | None:
    """(nodes, output dim) on the host, rows of unit length; None if any value is not finite.

    They are float16 if they were computed on a GPU (`vector_type`).

    A layer is computed for all nodes before the next, so nothing is computed twice. The states of
    all layers but the last stay on the device; apart from them, memory grows with a block's edges.
    All edges of a node are in one block, so blocks don't change the result. An output row of zeros,
    which GCN-Align can give, stays zero.

    Args:
        encoder: The trained encoder, on the device.
        rows: (nodes, dim): the entity table, anywhere.
        graph: The union graph, on the host or on the device.
        device: Where to compute.
        edges_per_block: The most edges at a time, unless one node has more. Default: by the memory
            that may be used.
    """
    width = rows.shape[1] * encoder.outputs_per_dimension
    edges_per_block = edges_per_block or block_size("inference", device, NODE_COPIES * 4 * width)
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
    runs = list(node_runs(graph.offsets, edges_per_block))
    states = [fill(runs, inputs, device)]
    while len(states) <= last:
        states.append(fill(runs, partial(layer, len(states) - 1), device))
    finite = torch.ones((), dtype=torch.bool, device=device)

    def checked(start: int, stop: int) -> Tensor:
        part = output(start, stop)
        finite.logical_and_(part.isfinite().all())
        return part.to(vector_type(device)) if part.dtype == torch.float32 else part

    everyone = fill(runs, checked, torch.device("cpu"))
    return everyone if bool(finite) else None
