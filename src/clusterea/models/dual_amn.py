"""Dual-AMN (Mao et al., WWW 2021): relational reflection, proxies shared by both graphs, a gate."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from clusterea.config import TrainingConfig
from clusterea.graph.expansion import Block
from clusterea.models.encoder import Shape, glorot
from clusterea.models.proxy_gate import proxy_gate
from clusterea.models.relational import RelationalEncoder

NUM_PROXIES = 64


class DualAMN(RelationalEncoder):
    """Attention by relation within a graph, attention to shared proxies between the graphs."""

    def __init__(self, shape: Shape, config: TrainingConfig, generator: torch.Generator) -> None:
        super().__init__(shape, config, generator)
        dimension, layers = config.dimension, self.num_layers
        width = (layers + 1) * dimension
        self.attention = glorot(layers, dimension, 2, generator=generator)
        self.proxies = glorot(2, NUM_PROXIES, width, generator=generator)
        self.gate = glorot(2, width, width, generator=generator)
        self.gate_bias = nn.Parameter(torch.zeros(2, 1, width))

    def scores(self, index: int, states: Tensor, axes: Tensor, block: Block) -> Tensor:
        del states  # the scores depend on the relation alone
        return (axes @ self.attention[index]).index_select(0, block.relation_sets)

    def readout(self, states: Sequence[Tensor]) -> Tensor:
        own = torch.cat(list(states), dim=2)  # (nodes, 2, width)
        directions = normalize(self.proxies, dim=2)
        return proxy_gate(own, self.proxies, directions, self.gate, self.gate_bias).flatten(1)
