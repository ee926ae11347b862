"""Chance: equal mini-batches, and the two ends of a seed in one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from planted import settings, unrelated

from clusterea.samplers import Resources
from clusterea.samplers.vps import vps
from clusterea.types import AlignmentTask, Pair
from small_graphs import graph


@given(st.integers(0, 30), st.integers(0, 30), st.floats(0, 1), st.integers(1, 12))
def test_sizes_differ_by_one_at_most(source: int, target: int, share: float, parts: int) -> None:
    graphs = Pair(graph([], source, 1), graph([], target, 1))
    ids = np.arange(int(share * min(source, target)))
    task = AlignmentTask(graphs, np.stack([ids, ids[::-1]], 1))
    nothing = graphs.map(lambda side: torch.empty(side.num_entities, 0))
    partition = vps(task, nothing, settings(num_batches=parts), Resources())
    for sizes in partition.sizes():
        assert max(sizes) - min(sizes) <= 1
    ends = torch.from_numpy(task.seeds.copy())
    assert torch.equal(partition.labels.source[ends[:, 0]], partition.labels.target[ends[:, 1]])


def test_every_mini_batch_is_as_likely() -> None:
    task, embeddings = unrelated()
    counts = torch.zeros(4)
    for seed in range(400):
        partition = vps(task, embeddings, settings(seed=seed), Resources())
        counts[partition.labels.source[59]] += 1
    statistic = float(((counts - 100) ** 2 / 100).sum())
    assert statistic < 16.3  # one in a thousand: chi-square with 3 degrees of freedom


def test_it_reads_no_embedding() -> None:
    task, embeddings = unrelated()
    one = vps(task, embeddings, settings(), Resources())
    other = vps(task, embeddings.map(torch.zeros_like), settings(), Resources())
    assert torch.equal(one.labels.source, other.labels.source)


@pytest.mark.parametrize("side", ["source", "target"])
def test_both_sides_are_dealt_anew(side: str) -> None:
    task, embeddings = unrelated()
    labels = vps(task, embeddings, settings(num_batches=60), Resources()).labels
    assert getattr(labels, side).tolist() != list(range(60))
    assert not torch.equal(labels.source, labels.target)
