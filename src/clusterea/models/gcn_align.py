"""GCN-Align (Wang et al., EMNLP 2018), structure only: two graph convolutions, no weights."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from clusterea.config import TrainingConfig
from clusterea.graph.expansion import Block
from clusterea.models.encoder import Encoder, Shape, with_self
from clusterea.numerics.segments import lengths, owners
from clusterea.numerics.sparse_matmul import SparseMatrix


class GCNAlign(Encoder):
    """D^-½ (A + I) D^-½ twice, with a rectifier between; A weighs edges by functionality."""

    def __init__(self, shape: Shape, config: TrainingConfig, generator: torch.Generator) -> None:
        del generator
        super().__init__()
        self._num_entities = shape.num_entities
        self._dimension = config.dimension

    def initial_rows(self, generator: torch.Generator) -> Tensor:
        # Glorot's deviation, for each graph separately.
        rows = torch.randn(sum(self._num_entities), self._dimension, generator=generator)
        for part in torch.split(rows, list(self._num_entities)):
            part.mul_((2 / (len(part) + self._dimension)) ** 0.5)
        return rows

    def inputs(
        self, rows: Tensor, neighbors: Block | None, incident: SparseMatrix | None
    ) -> Tensor:
        del neighbors, incident
        return rows

    def layer(self, index: int, states: Tensor, block: Block) -> Tensor:
        # Scaled up: a sample of the neighbors represents all of them.
        scale = block.degrees / lengths(block.offsets).clamp(min=1)
        owner = owners(block.offsets, block.num_edges)
        weights = block.weights * scale.index_select(0, owner)
        convolved = with_self(block, weights, block.self_weights) @ states
        return torch.relu(convolved) if index == 0 else convolved

    def readout(self, states: Sequence[Tensor]) -> Tensor:
        return states[-1]
