"""RREA (Mao et al., CIKM 2020): relational reflection, attention over messages and relations."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from clusterea.config import TrainingConfig
from clusterea.graph.expansion import Block
from clusterea.models.encoder import Shape, glorot
from clusterea.models.relational import RelationalEncoder
from clusterea.numerics.edges import edge_dots


class RREA(RelationalEncoder):
    """Both channels share their attention vectors, as in the original."""

    def __init__(self, shape: Shape, config: TrainingConfig, generator: torch.Generator) -> None:
        super().__init__(shape, config, generator)
        dimension = config.dimension
        # The original scores [receiver, message, relation]. The receiver's part is the same for all
        # its messages and cancels in the softmax, so it is left out.
        self.message_attention = glorot(self.num_layers, dimension, 1, generator=generator)
        self.relation_attention = glorot(self.num_layers, dimension, 1, generator=generator)

    def scores(self, index: int, states: Tensor, axes: Tensor, block: Block) -> Tensor:
        by_relation = (axes @ self.relation_attention[index]).index_select(0, block.relation_sets)
        # w · (h reflected) = h · (w reflected), and there are far fewer axes than messages.
        vector = self.message_attention[index].T  # (1, dim)
        reflected = vector - 2 * (axes * vector).sum(1, keepdim=True) * axes  # (sets, dim)
        return edge_dots(states, reflected, block.senders, block.relation_sets) + by_relation

    def readout(self, states: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(states), dim=2).flatten(1)
