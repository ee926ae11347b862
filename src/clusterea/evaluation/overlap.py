"""Overlap: the share of links that a partition keeps together (section 5.4)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clusterea.types import Benchmark, IntArray, Partition


@dataclass(frozen=True, slots=True)
class Overlap:
    """Shares of links whose two entities are in the same mini-batch."""

    seeds: float
    test: float
    all: float
    macro: float  # over all links, as the authors' release computes it


def overlap(partition: Partition, benchmark: Benchmark) -> Overlap:
    """The overlap of a benchmark's seeds, test links, and both."""
    seeds, test = benchmark.task.seeds, benchmark.test_links
    both = _labels(partition, seeds), _labels(partition, test)
    everything = torch.cat(both)
    return Overlap(
        seeds=_share(both[0]),
        test=_share(both[1]),
        all=_share(everything),
        macro=macro_overlap(everything, partition.num_batches),
    )


def macro_overlap(labels: Tensor, num_batches: int) -> float:
    """The overlap as the authors' release computes it: an unweighted mean over mini-batches.

    For each mini-batch of one side, it takes the largest share of links that lead to one mini-batch
    of the other side. Small mini-batches count as much as large ones, and several may choose the
    same one, so this is not the share of links that stay together.

    Args:
        labels: (links, 2): the mini-batches of the two entities.
        num_batches: The number of mini-batches.
    """
    cells = labels[:, 0] * num_batches + labels[:, 1]
    shared = cells.bincount(minlength=num_batches**2).view(num_batches, num_batches).double()
    ways = [(table.max(1).values / (table.sum(1) + 0.01)).mean() for table in (shared, shared.T)]
    return float(sum(ways) / 2)


def _labels(partition: Partition, links: IntArray) -> Tensor:
    ends = torch.from_numpy(links.copy())
    source, target = partition.labels
    return torch.stack([source[ends[:, 0]], target[ends[:, 1]]], dim=1)


def _share(labels: Tensor) -> float:
    """The share of links with equal labels; 0 without links."""
    return float((labels[:, 0] == labels[:, 1]).double().mean()) if len(labels) else 0.0
