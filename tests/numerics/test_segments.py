"""Segment operations against loops, with empty segments at both ends and within."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from clusterea.numerics.segments import (
    lengths,
    owners,
    segment_softmax,
    segment_sum,
    unordered_sum,
)

LENGTHS = [0, 3, 0, 1, 4, 0]


@pytest.fixture
def offsets() -> Tensor:
    return torch.tensor([0, *torch.tensor(LENGTHS).cumsum(0).tolist()])


@pytest.fixture
def values() -> Tensor:
    draw = torch.Generator().manual_seed(3)
    rows = torch.randn(sum(LENGTHS), 2, dtype=torch.float64, generator=draw)
    return rows.requires_grad_()


def test_lengths_and_owners(offsets: Tensor) -> None:
    assert lengths(offsets).tolist() == LENGTHS
    assert owners(offsets, sum(LENGTHS)).tolist() == [1, 1, 1, 3, 4, 4, 4, 4]


def test_sum(offsets: Tensor, values: Tensor) -> None:
    sums = segment_sum(values, offsets)
    for segment, (start, stop) in enumerate(pairwise(offsets.tolist())):
        torch.testing.assert_close(sums[segment], values[start:stop].sum(0))
    assert torch.autograd.gradcheck(segment_sum, (values, offsets))


def test_softmax(offsets: Tensor, values: Tensor) -> None:
    owner = owners(offsets, len(values))
    weights = segment_softmax(values, offsets, owner)
    for start, stop in pairwise(offsets.tolist()):
        if start < stop:
            torch.testing.assert_close(weights[start:stop], values[start:stop].softmax(0))
    assert torch.autograd.gradcheck(segment_softmax, (values, offsets, owner))


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=8),
    st.sampled_from([1.0, 100.0, 1e30]),
    st.integers(0, 1000),
)
def test_softmax_sums_to_one_whatever_the_scale(sizes: list[int], scale: float, seed: int) -> None:
    offsets = torch.tensor([0, *sizes]).cumsum(0)
    rows = sum(sizes)
    scores = scale * torch.randn(rows, 3, generator=torch.Generator().manual_seed(seed))
    weights = segment_softmax(scores, offsets, owners(offsets, rows))
    wanted = (lengths(offsets) > 0).float()[:, None].expand(-1, 3)
    torch.testing.assert_close(segment_sum(weights, offsets), wanted)


def test_no_order_shows_in_an_unordered_sum() -> None:
    draw = torch.Generator().manual_seed(0)
    values = torch.randn(5000, generator=draw)
    owner = torch.randint(0, 7, (5000,), generator=draw)
    sums = unordered_sum(values, owner, 9)
    wanted = torch.zeros(9, dtype=torch.float64).index_add_(0, owner, values.double())
    torch.testing.assert_close(sums, wanted, rtol=0, atol=5000 * 2.0**-31)
    assert sums[7:].tolist() == [0, 0]
    for _ in range(3):
        order = torch.randperm(5000, generator=draw)
        assert torch.equal(unordered_sum(values[order], owner[order], 9), sums)
