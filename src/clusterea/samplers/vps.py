"""VPS: mini-batches at random, seed pairs kept together. A baseline."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.config import SamplingConfig
from clusterea.samplers.sampler import Resources
from clusterea.seeding import generator
from clusterea.types import AlignmentTask, Pair, Partition


def vps(
    task: AlignmentTask, embeddings: Pair[Tensor], config: SamplingConfig, resources: Resources
) -> Partition:
    """Mini-batches of equal size, drawn at random; the two ends of a seed share one."""
    del embeddings, resources
    draw = generator(config.seed, "vps")

    def dealt(count: int, after: int) -> Tensor:
        """Labels in turn, `after` the labels dealt before: batch sizes differ by at most one."""
        turns = torch.randperm(count, generator=draw)
        return (after + turns) % config.num_batches

    of_seed = dealt(task.num_seeds, 0)

    def side(count: int, seeds: Tensor) -> Tensor:
        labels = torch.full((count,), -1)
        labels[seeds] = of_seed
        others = (labels < 0).nonzero().flatten()
        labels[others] = dealt(len(others), task.num_seeds)
        return labels

    seeds = torch.from_numpy(task.seeds.copy())
    source, target = task.graphs.map(lambda graph: graph.num_entities)
    return Partition(Pair(side(source, seeds[:, 0]), side(target, seeds[:, 1])), config.num_batches)
