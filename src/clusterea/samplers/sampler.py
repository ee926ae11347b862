"""The contract of a sampler: `Sampler`, and `reverse`, which swaps the sides it works on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor

from clusterea.config import SamplingConfig
from clusterea.graph.metis import metis, simple_graph
from clusterea.types import AlignmentTask, IntArray, KnowledgeGraph, Pair, Partition

Cut = Callable[[KnowledgeGraph, int, int], IntArray]  # graph, parts, seed → each entity's part

CPU = torch.device("cpu")


def metis_cut(graph: KnowledgeGraph, num_parts: int, seed: int) -> IntArray:
    """(entities,): METIS's parts of a graph, computed now."""
    return metis(simple_graph(graph), num_parts, seed)


@dataclass(frozen=True, slots=True)
class Resources:
    """A sampler's device and its source of METIS cuts. Neither changes the result."""

    device: torch.device = CPU
    cut: Cut = metis_cut  # `align` passes one that began while the embeddings were trained


Sample: TypeAlias = Callable[[AlignmentTask, Pair[Tensor], SamplingConfig, Resources], Partition]


@dataclass(frozen=True, slots=True)
class Sampler:
    """Cuts both graphs into `config.num_batches` mini-batches that hold equivalent entities.

    Every entity of both sides is in exactly one; the same arguments give the same mini-batches. A
    sampler sees the seeds and the embeddings and never a test link: the task has none.

    Attributes:
        sample: The function that does it.
        settings: The fields of `SamplingConfig` that this sampler reads and others don't.
        needs_metis: Whether it asks `resources.cut` for the parts of the first graph.
        is_reversed: Whether it works from the target to the source.
    """

    sample: Sample
    settings: tuple[str, ...] = ()
    needs_metis: bool = False
    is_reversed: bool = False

    def __call__(
        self,
        task: AlignmentTask,
        embeddings: Pair[Tensor],
        config: SamplingConfig,
        resources: Resources,
    ) -> Partition:
        if self.is_reversed:
            return self.sample(task.swap(), embeddings.swap(), config, resources).swap()
        return self.sample(task, embeddings, config, resources)

    def graph_to_cut(self, graphs: Pair[KnowledgeGraph]) -> KnowledgeGraph | None:
        """The graph whose METIS parts it will ask for, if any."""
        if not self.needs_metis:
            return None
        return graphs.target if self.is_reversed else graphs.source


def reverse(sampler: Sampler) -> Sampler:
    """The same sampler on swapped sides."""
    return replace(sampler, is_reversed=not sampler.is_reversed)
