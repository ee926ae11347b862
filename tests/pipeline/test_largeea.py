"""LargeEA: a model in each mini-batch, and candidates nowhere else."""

from __future__ import annotations

import numpy as np
import torch
from small_runs import CPU, benchmark

from clusterea.config import FusionConfig, SamplingConfig, training_config
from clusterea.evaluation import evaluate
from clusterea.pipeline.largeea import METIS_CPS, largeea
from clusterea.samplers import sample
from clusterea.types import AlignmentTask, Similarity

SAMPLING = SamplingConfig(num_batches=2)
FUSION = FusionConfig(candidates=10)


def aligned(task: AlignmentTask, seed: int = 0) -> Similarity:
    training = training_config(
        "gcn-align", dimension=32, epochs=40, fanout=None, seeds_per_step=None, seed=seed
    )
    return largeea(task, training, SAMPLING, FUSION, CPU)


def test_candidates_are_of_the_same_mini_batch() -> None:
    task = benchmark((160, 130)).task
    found = aligned(task)
    nothing = task.graphs.map(lambda graph: torch.empty(graph.num_entities, 0))
    labels = sample(METIS_CPS, task, nothing, SAMPLING).labels
    assert found.num_cells
    assert torch.equal(labels.source[found.rows()], labels.target[found.columns])
    assert not np.isin(found.rows().numpy(), task.seeds[:, 0]).any()
    assert not np.isin(found.columns.numpy(), task.seeds[:, 1]).any()
    most = torch.bincount(found.rows(), minlength=160).max()
    assert 10 <= most <= 10 + 130


def test_it_is_better_than_chance() -> None:
    given = benchmark((160, 130))
    metrics = evaluate(aligned(given.task), given.test_links, given.task.seeds)
    assert metrics.test_candidates.source.hits[10] > 3 * 10 / len(given.test_links)


def test_the_same_seed_gives_the_same_cells() -> None:
    task = benchmark((160, 130)).task
    one, same, other = aligned(task), aligned(task), aligned(task, seed=1)
    assert torch.equal(one.values, same.values)
    assert torch.equal(one.columns, same.columns)
    assert not (one.num_cells == other.num_cells and torch.equal(one.values, other.values))


def test_without_seeds_in_a_mini_batch_it_has_no_cells() -> None:
    task = benchmark((160, 130)).task
    nothing = task.graphs.map(lambda graph: torch.empty(graph.num_entities, 0))
    few = task.with_seeds(task.seeds[:1])
    labels = sample(METIS_CPS, few, nothing, SAMPLING).labels
    found = aligned(few)
    with_seed = labels.source[few.seeds[0, 0]]
    assert bool((labels.source[found.rows()] == with_seed).all())
