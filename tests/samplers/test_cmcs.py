"""CMCS: what it standardizes, what it hands to k-means, and odd clusters."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from planted import planted, settings, unrelated

from clusterea.samplers import Resources, classifiers
from clusterea.samplers.cmcs import cmcs, standardized
from clusterea.types import AlignmentTask


class TestStandardized:
    @given(arrays.arrays(np.float64, (6, 3), elements=st.floats(-100, 100, width=32)))
    def test_columns_have_mean_zero_and_deviation_one(self, values: NDArray[np.float64]) -> None:
        result = standardized(torch.from_numpy(values)).numpy()
        for column, given_ in zip(result.T, values.T, strict=True):
            if given_.std() > 1e-3:
                assert abs(column.mean()) < 1e-9
                assert abs(column.std() - 1) < 1e-9
                np.testing.assert_allclose(column, (given_ - given_.mean()) / given_.std())
            assert np.isfinite(column).all()

    def test_a_constant_column_says_nothing(self) -> None:
        result = standardized(torch.tensor([[3.0, 0.1], [5.0, 0.1], [7.0, 0.1]]))
        assert len(set(result[:, 1].tolist())) == 1
        assert result[:, 1].abs().max() <= 1

    def test_nothing_and_one_row(self) -> None:
        assert standardized(torch.empty(0, 3)).shape == (0, 3)
        assert standardized(torch.tensor([[4.0, -2.0]])).tolist() == [[0.0, 0.0]]


def test_a_dimension_in_other_units_does_not_rule() -> None:
    benchmark, embeddings, _ = planted()
    config = settings()
    wanted = cmcs(benchmark.task, embeddings, config, Resources())
    noise = torch.randn(160, 1, generator=torch.Generator().manual_seed(0))
    loud = embeddings.map(lambda side: torch.cat([side, 1e4 * noise], 1))
    heard = cmcs(benchmark.task, loud, config, Resources())
    assert heard.sizes().source != [160, 0, 0, 0]
    # Labels may be numbered otherwise; who is with whom may not.
    together = [
        labels.unsqueeze(1) == labels for labels in (wanted.labels.source, heard.labels.source)
    ]
    assert float((together[0] == together[1]).double().mean()) > 0.95


@pytest.mark.parametrize("classifier", classifiers.CLASSIFIERS)
@pytest.mark.parametrize("share", [1.01, 1.5, 2.0])
def test_no_mini_batch_is_larger_than_its_share(classifier: str, share: float) -> None:
    if classifier == "xgboost":
        pytest.importorskip("xgboost")
    task, embeddings = unrelated()
    config = settings(classifier=classifier, largest_share=share, num_batches=7)
    for sizes in cmcs(task, embeddings, config, Resources()).sizes():
        assert max(sizes) <= np.ceil(share * 60 / 7)


@pytest.mark.parametrize("classifier", classifiers.CLASSIFIERS)
@pytest.mark.parametrize("kind", ["identical", "one apart", "fewer than clusters", "one", "none"])
def test_odd_clusters(classifier: str, kind: str) -> None:
    if classifier == "xgboost":
        pytest.importorskip("xgboost")
    task, embeddings = unrelated()
    if kind == "identical":
        embeddings = embeddings.map(torch.ones_like)
    elif kind == "one apart":
        embeddings = embeddings.map(torch.zeros_like)
        embeddings.source[task.seeds[3, 0]] = 50.0
        embeddings.target[task.seeds[3, 1]] = -50.0
    else:
        count = {"fewer than clusters": 3, "one": 1, "none": 0}[kind]
        task = AlignmentTask(task.graphs, task.seeds[:count])
    partition = cmcs(task, embeddings, settings(classifier=classifier, num_batches=5), Resources())
    for sizes in partition.sizes():
        assert sum(sizes) == 60
        assert max(sizes) <= 24


def test_an_unknown_classifier_is_found_out_before_any_work() -> None:
    task, embeddings = unrelated()
    config = settings()
    object.__setattr__(config, "classifier", "forest")
    with pytest.raises(ValueError, match="unknown classifier 'forest'"):
        cmcs(task, embeddings, config, Resources())
