"""Balance: the cap is always met, nobody moves without need, and those who move lose least."""

from __future__ import annotations

from math import ceil, inf

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from clusterea.numerics.balance import balanced


def slow(scores: Tensor, largest_share: float) -> list[int]:
    """The same rule, row by row."""
    rows = [[max(score, -1e30) for score in row] for row in scores.tolist()]
    classes = scores.shape[1]
    most = ceil(largest_share * len(rows) / classes)
    labels = [row.index(max(row)) for row in rows]
    still_open = set(range(classes))
    while True:
        sizes = [labels.count(label) for label in range(classes)]
        fullest = sizes.index(max(sizes))
        if sizes[fullest] <= most:
            return labels
        still_open.discard(fullest)
        moves = []
        for index, row in enumerate(rows):
            if labels[index] == fullest:
                best = max(sorted(still_open), key=lambda label, row=row: row[label])  # type: ignore[misc]
                moves.append((row[fullest] - row[best], index, best))
        for _, index, best in sorted(moves)[: sizes[fullest] - most]:
            labels[index] = best


@st.composite
def tables(draw: st.DrawFn) -> Tensor:
    """Scores with ties, and now and then minus infinity."""
    rows, classes = draw(st.integers(0, 14)), draw(st.integers(1, 5))
    score = st.one_of(st.integers(-3, 3).map(float), st.just(-inf))
    cells = draw(st.lists(score, min_size=rows * classes, max_size=rows * classes))
    return torch.tensor(cells, dtype=torch.float64).reshape(rows, classes)


@given(tables(), st.sampled_from([1.0, 1.3, 2.0, 50.0]))
def test_any_scores(scores: Tensor, largest_share: float) -> None:
    before = scores.clone()
    labels = balanced(scores, largest_share)
    assert torch.equal(scores, before)
    assert labels.dtype == torch.int64
    assert labels.tolist() == slow(scores, largest_share)
    rows, classes = scores.shape
    sizes = labels.bincount(minlength=classes)
    assert len(sizes) == classes
    assert int(sizes.max()) <= ceil(largest_share * rows / classes)


def test_who_loses_least_moves_to_the_next_best() -> None:
    scores = torch.tensor([[9.0, 1, 0], [9, 8, 0], [9, 2, 7], [9, 0, 5.5], [0, 9, 8.5], [0, 1, 9]])
    assert balanced(scores, 1.0).tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("share", [1.0, 1.1])
def test_many_rows_of_one_class(share: float) -> None:
    scores = torch.randn(5000, 30, generator=torch.Generator().manual_seed(0))
    scores[:, 7] += 20
    sizes = balanced(scores, share).bincount(minlength=30)
    assert int(sizes.sum()) == 5000
    assert int(sizes.max()) <= ceil(share * 5000 / 30)
