"""ISCS: METIS's parts stay as they are, and the target's follow the seeds within their share."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from planted import CPU, planted, settings, unrelated

from clusterea.samplers import Resources, metis_cut
from clusterea.samplers.gcn import classify_nodes
from clusterea.samplers.iscs import iscs
from clusterea.types import AlignmentTask


def test_the_source_has_metis_s_parts() -> None:
    task, embeddings = unrelated()
    labels = iscs(task, embeddings, settings(seed=3), Resources()).labels
    assert labels.source.tolist() == metis_cut(task.graphs.source, 4, 3).tolist()


def test_the_target_has_what_the_gcn_says() -> None:
    benchmark, embeddings, _ = planted()
    task, config = benchmark.task, settings(gcn_epochs=150)
    labels = iscs(task, embeddings, config, Resources()).labels
    seeds = torch.from_numpy(task.seeds.copy())
    parts = labels.source[seeds[:, 0]]
    scores = classify_nodes(task.graphs.target, embeddings.target, seeds[:, 1], parts, config, CPU)
    assert torch.equal(labels.target, scores.argmax(1))  # all within their share, so none moves


@pytest.mark.parametrize("share", [1.01, 1.5, 2.0])
def test_no_part_of_the_target_is_larger_than_its_share(share: float) -> None:
    task, embeddings = unrelated()
    # All seeds in one part of the source: the GCN would put the whole target there.
    first = metis_cut(task.graphs.source, 4, 0)
    inside = np.flatnonzero(first == first[0])
    task = AlignmentTask(task.graphs, np.stack([inside, inside], 1))
    config = settings(largest_share=share, gcn_epochs=100)
    sizes = iscs(task, embeddings, config, Resources()).sizes()
    assert max(sizes.target) <= np.ceil(share * 60 / 4)
    assert sum(sizes.target) == 60


def test_the_source_s_embeddings_are_not_read() -> None:
    task, embeddings = unrelated()
    one = iscs(task, embeddings, settings(), Resources())
    embeddings.source.fill_(torch.nan)
    other = iscs(task, embeddings, settings(), Resources())
    assert torch.equal(one.labels.target, other.labels.target)
