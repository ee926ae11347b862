"""The contract of a sampler: `Sampler`, and `reverse`, which turns one round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from clusterea.config import SamplingConfig
from clusterea.graph.metis import metis, simple_graph
from clusterea.types import AlignmentTask, IntArray, KnowledgeGraph, Pair, Partition

Cut = Callable[[KnowledgeGraph, int, int], IntArray]  # graph, parts, seed → each entity's part


CPU = torch.device("cpu")


def metis_cut(graph: KnowledgeGraph, num_parts: int, seed: int) -> IntArray:
    """(entities,): METIS's parts of a graph, here and now."""
    return metis(simple_graph(graph), num_parts, seed)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sampler computes, and who cuts graphs for it: how, not what."""

    device: torch.device = CPU
    cut: Cut = metis_cut  # another one may have begun while the embeddings were trained


class Sampler(Protocol):
    """Cuts both graphs into `config.num_batches` mini-batches that hold equivalent entities.

    Every entity of both sides is in exactly one; the same arguments give the same mini-batches. A
    sampler sees the seeds and the embeddings and never a test link: the task has none.
    """

    def __call__(
        self, task: AlignmentTask, embeddings: Pair[Tensor], config: SamplingConfig, place: Place
    ) -> Partition: ...


@dataclass(frozen=True, slots=True)
class Reversed:
    """A sampler that works from the target to the source."""

    sampler: Sampler

    def __call__(
        self, task: AlignmentTask, embeddings: Pair[Tensor], config: SamplingConfig, place: Place
    ) -> Partition:
        return self.sampler(task.swap(), embeddings.swap(), config, place).swap()


def reverse(sampler: Sampler) -> Sampler:
    """The same sampler on swapped sides; turned round twice it is itself."""
    return sampler.sampler if isinstance(sampler, Reversed) else Reversed(sampler)
