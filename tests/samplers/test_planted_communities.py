"""Planted communities: every sampler but chance finds them, and chance does what chance must."""

from __future__ import annotations

import pytest
import torch
from planted import planted, settings

from clusterea.evaluation.overlap import overlap
from clusterea.samplers import SAMPLERS, sample

LEARNED = [
    ("cmcs", "softmax"),
    ("cmcs", "xgboost"),
    *((name, "softmax") for name in SAMPLERS if name not in ("cmcs", "vps")),
]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("name", "classifier"), LEARNED)
def test_are_found(name: str, classifier: str, seed: int) -> None:
    if classifier == "xgboost":
        pytest.importorskip("xgboost")
    benchmark, embeddings, truth = planted(seed)
    config = settings(classifier=classifier, gcn_epochs=150)
    partition = sample(name, benchmark.task, embeddings, config)
    measured = overlap(partition, benchmark)
    least = 0.85 if classifier == "xgboost" else 0.95  # trees from 48 examples
    assert measured.test > least
    assert measured.seeds > least
    # Together is not enough, one mini-batch would do that: they are the communities.
    for labels, community in zip(partition.labels, truth, strict=True):
        table = torch.zeros(4, 4)
        table.index_put_((labels, torch.from_numpy(community)), torch.ones(160), accumulate=True)
        assert float(table.max(1).values.sum() / 160) > least
        assert sorted(table.argmax(1).tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("num_batches", [2, 4, 8])
def test_chance_keeps_seeds_together_and_a_share_of_the_rest(num_batches: int) -> None:
    tests, everything = 0.0, 0.0
    for seed in range(10):
        benchmark, embeddings, _ = planted(seed)
        config = settings(num_batches=num_batches, seed=seed)
        measured = overlap(sample("vps", benchmark.task, embeddings, config), benchmark)
        assert measured.seeds == 1
        tests += measured.test / 10
        everything += measured.all / 10
    # 1120 draws: three deviations are less than 0.05
    assert tests == pytest.approx(1 / num_batches, abs=0.05)
    assert everything == pytest.approx(0.3 + 0.7 / num_batches, abs=0.05)
