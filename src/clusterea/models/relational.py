"""What RREA and Dual-AMN share: inputs from entities and relations, and relational reflection."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from clusterea.config import TrainingConfig
from clusterea.graph.expansion import Block
from clusterea.models.encoder import Encoder, Shape, neighborhood_mean
from clusterea.numerics.edges import reflect_and_sum
from clusterea.numerics.segments import owners, segment_softmax
from clusterea.numerics.sparse_matmul import SparseMatrix

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "relu": torch.relu}
EMBEDDING_BOUND = 0.05  # the originals draw embeddings uniformly from ± this


class RelationalEncoder(Encoder):
    """Two channels, of entities and of relations, that pass messages over the same edges.

    A state is (nodes, 2, dim). Channel 0 starts with the mean of the entities around a node,
    channel 1 with the mean of the relations on its edges. A message is the sender's state reflected
    at the hyperplane whose normal is the edge's relation.
    """

    outputs_per_dimension: ClassVar[int] = 6  # two channels, each of three states
    reads_neighbors: ClassVar[bool] = True
    reads_relations: ClassVar[bool] = True

    def __init__(self, shape: Shape, config: TrainingConfig, generator: torch.Generator) -> None:
        super().__init__()
        self._num_nodes = sum(shape.num_entities)
        self._dimension = config.dimension
        self._activation = ACTIVATIONS[config.activation]
        self.sets = shape.sets
        self.relations = nn.Parameter(
            _uniform(shape.num_relations, config.dimension, generator=generator)
        )  # (relations, dim)

    def initial_rows(self, generator: torch.Generator) -> Tensor:
        return _uniform(self._num_nodes, self._dimension, generator=generator)

    def inputs(
        self, rows: Tensor, neighbors: Block | None, incident: SparseMatrix | None
    ) -> Tensor:
        if neighbors is None or incident is None:
            raise ValueError("neighbors and incident must be given: this model reads both.")
        entities = neighborhood_mean(neighbors) @ rows
        relations = incident @ self.relations
        return self._activation(torch.stack([entities, relations], dim=1))

    def layer(self, index: int, states: Tensor, block: Block) -> Tensor:
        if self.sets is None:
            raise ValueError("sets must be given: this model reads them.")
        axes = normalize(self.sets @ self.relations, dim=1)  # (sets, dim)
        owner = owners(block.offsets, block.num_edges)
        scores = self.scores(index, states, axes, block)  # (edges, 2)
        attention = segment_softmax(scores, block.offsets, owner)
        return self._activation(
            reflect_and_sum(
                states,
                axes,
                attention,
                block.senders,
                block.relation_sets,
                owner,
                block.num_receivers,
            )
        )

    @abstractmethod
    def scores(self, index: int, states: Tensor, axes: Tensor, block: Block) -> Tensor:
        """(edges, 2): the attention score of each message, before the softmax over its receiver.

        Args:
            index: The layer.
            states: (nodes, 2, dim) of the block's nodes.
            axes: (sets, dim): the unit normal of each set of relations.
            block: The edges.
        """


def _uniform(*shape: int, generator: torch.Generator) -> Tensor:
    return torch.empty(shape).uniform_(-EMBEDDING_BOUND, EMBEDDING_BOUND, generator=generator)
