"""`Encoder`: the contract of all models, which training and inference rely on."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from clusterea.graph.expansion import Block
from clusterea.graph.union import UnionGraph
from clusterea.numerics.segments import lengths, owners
from clusterea.numerics.sparse_matmul import SparseMatrix
from clusterea.types import KnowledgeGraph, Pair


@dataclass(frozen=True, slots=True)
class Shape:
    """What an encoder needs to know of a graph when it is made."""

    num_entities: tuple[int, int]
    num_relations: int  # with inverses
    sets: SparseMatrix | None = None  # see `Encoder.sets`; None: given later

    @staticmethod
    def of(graph: UnionGraph, device: torch.device) -> Shape:
        sizes = graph.num_entities.source, graph.num_entities.target
        return Shape(sizes, graph.num_relations, means_of_sets(graph).to(device))

    @staticmethod
    def before_union(graphs: Pair[KnowledgeGraph]) -> Shape:
        """What is known before the union of the graphs is made."""
        sizes = graphs.source.num_entities, graphs.target.num_entities
        return Shape(sizes, 2 * sum(graph.num_relations for graph in graphs))


def means_of_sets(graph: UnionGraph) -> SparseMatrix:
    """(sets, relations): the mean over each edge's set of relations."""
    return SparseMatrix.means(graph.set_offsets, graph.set_relations, graph.num_relations)


class Encoder(nn.Module):
    """Layers of message passing over rows of an entity table that the trainer owns.

    The trainer calls `inputs` once, `layer` for each hop with the block it expanded, and `readout`
    with the states of the nodes it asked for. Inference calls the same three for all nodes, layer
    by layer, so it needs no expansion.
    """

    num_layers: ClassVar[int] = 2
    #: The width of the output divided by that of a row of the table.
    outputs_per_dimension: ClassVar[int] = 1
    #: Whether `inputs` reads the rows of neighbors too: one more hop to expand.
    reads_neighbors: ClassVar[bool] = False
    #: Whether `inputs` reads the relations on a node's edges.
    reads_relations: ClassVar[bool] = False
    #: `means_of_sets` on the computing device; needed by `layer` of some models.
    sets: SparseMatrix | None = None

    @abstractmethod
    def initial_rows(self, generator: torch.Generator) -> Tensor:
        """(nodes, dim): the initial entity table, on the host."""

    @abstractmethod
    def inputs(
        self, rows: Tensor, neighbors: Block | None, incident: SparseMatrix | None
    ) -> Tensor:
        """State 0 of the nodes asked for.

        Args:
            rows: (nodes, dim): table rows of `neighbors.nodes`, or else of the nodes asked for.
            neighbors: The block whose receivers are asked for, if `reads_neighbors`.
            incident: (nodes, relations): the mean over a node's relations, if `reads_relations`.
        """

    @abstractmethod
    def layer(self, index: int, states: Tensor, block: Block) -> Tensor:
        """State `index + 1` of the block's receivers from state `index` of its nodes."""

    @abstractmethod
    def readout(self, states: Sequence[Tensor]) -> Tensor:
        """(nodes, output dim) from all states of the same nodes, first to last."""


def glorot(*shape: int, generator: torch.Generator) -> nn.Parameter:
    """A parameter drawn from Glorot's uniform distribution; the last two dimensions count."""
    fan_out, fan_in = (shape[-1], shape[-2]) if len(shape) > 1 else (1, shape[0])
    bound = (6 / (fan_in + fan_out)) ** 0.5
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))


def with_self(block: Block, edge_values: Tensor, own_values: Tensor) -> SparseMatrix:
    """(receivers, nodes): a value for each edge of the block, and one for each receiver itself."""
    receivers, edges = block.num_receivers, block.num_edges
    device = block.nodes.device
    owner = owners(block.offsets, edges)
    offsets = block.offsets + torch.arange(receivers + 1, device=device)
    slots = torch.arange(edges, device=device) + owner
    last = offsets[1:] - 1  # the receiver itself is listed after its neighbors
    columns = torch.empty(edges + receivers, dtype=torch.int64, device=device)
    columns[slots], columns[last] = block.senders, block.receivers
    values = torch.empty(edges + receivers, device=device)
    values[slots], values[last] = edge_values, own_values
    return SparseMatrix(offsets, columns, values, block.num_nodes)


def neighborhood_mean(block: Block) -> SparseMatrix:
    """(receivers, nodes): the mean over a receiver and its neighbors.

    If the block holds a sample of the neighbors, the receiver has weight 1 / (degree + 1) as in the
    full graph, and the sampled neighbors share the rest equally.
    """
    own = 1 / (block.degrees + 1).float()
    each = (1 - own) / lengths(block.offsets).clamp(min=1)
    return with_self(block, each.index_select(0, owners(block.offsets, block.num_edges)), own)
