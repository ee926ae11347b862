"""Overlap: how many links a partition keeps together (section 5.4). It needs links to judge by."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clusterea.types import Benchmark, IntArray, Partition


@dataclass(frozen=True, slots=True)
class Overlap:
    """Shares of links whose two ends share a mini-batch."""

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
    """The release's figure: each part's largest overlap with any part, unweighted, both ways.

    Two parts may pick the same partner, and a part of three links counts as much as one of three
    thousand: so it is not the share of links that stay together.

    Args:
        labels: (links, 2): the mini-batches of the two ends.
        num_batches: How many there are.
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
    """0 where there are no links."""
    return float((labels[:, 0] == labels[:, 1]).double().mean()) if len(labels) else 0.0
