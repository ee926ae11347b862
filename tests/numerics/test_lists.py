"""Approximate neighbors: exact where all are looked at, and never anything but true cosines."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from clusterea.numerics.knn import Neighbors
from clusterea.numerics.lists import Lists, list_centers, list_labels, recall
from clusterea.numerics.lists import searched as search_lists
from clusterea.numerics.segments import offsets_of
from clusterea.numerics.ties import tie_vectors
from clusterea.types import Pair
from vector_problems import problem
from whole_runs import nearest, nearest_approximate


def lists_of(rows: Tensor, centers: Tensor, ties: Tensor) -> tuple[Lists, Tensor]:
    """The lists of a side, and the order that its rows have in them."""
    labels = list_labels(rows, centers)
    order = labels.argsort(stable=True)
    offsets = offsets_of(labels.bincount(minlength=len(centers) + 1))
    return Lists(0, offsets, torch.arange(len(rows)), ties[order]), order


def test_recall() -> None:
    exact = Neighbors(torch.tensor([[3, 1], [0, 2]]), torch.zeros(2, 2))
    half = Neighbors(torch.tensor([[1, 3], [4, 5]]), torch.zeros(2, 2))
    assert recall(Pair(half, exact), Pair(exact, exact)) == Pair(0.5, 1.0)


def test_finds_most_of_what_lies_together() -> None:
    """Sixty regions; a row is compared with a seventh of the others."""
    source, target, ties = problem(1500, 2000, 16, distinct=60)
    draw = torch.Generator().manual_seed(5)
    source, target = (
        normalize(rows + 0.1 * torch.randn(rows.shape, generator=draw)) for rows in (source, target)
    )
    exact = nearest(source, target, 10, ties, 0)
    found = nearest_approximate(source, target, 10, ties, 0, compared=280)
    assert min(recall(found, exact)) > 0.95
    fewer = nearest_approximate(source, target, 10, ties, 0, compared=30)
    assert sum(recall(fewer, exact)) < sum(recall(found, exact))


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(1, 60),
    columns=st.integers(1, 60),
    distinct=st.sampled_from([None, 1, 5]),
    num_zeros=st.integers(0, 3),
    k=st.integers(1, 70),
)
def test_who_looks_at_all_finds_all(
    rows: int, columns: int, distinct: int | None, num_zeros: int, k: int
) -> None:
    source, target, ties = problem(rows, columns, distinct=distinct)
    source[:num_zeros] = target[:num_zeros] = 0.0
    exact = nearest(source, target, k, ties, 0)
    found = nearest_approximate(source, target, k, ties, 0, compared=columns + rows)
    for one, other in zip(found, exact, strict=True):
        assert torch.equal(one.values, other.values)
        if distinct is None:  # many equal ones may be cut off elsewhere
            assert torch.equal(one.indices, other.indices)


@pytest.mark.parametrize("columns", [1000, 1999, 4096])
@pytest.mark.parametrize("distinct", [None, 50])
def test_finds_all_among_many(columns: int, distinct: int | None) -> None:
    """So many that the best cells are looked for in groups, and some are padding."""
    source, target, ties = problem(70, columns, distinct=distinct)
    source, target = source.abs(), -target.abs()  # no cosine is above those of padding
    target[5:10] = 0.0
    exact = nearest(source, target, 20, ties, 0)
    found = nearest_approximate(source, target, 20, ties, 0, compared=columns, spare=4)
    for one, other in zip(found, exact, strict=True):
        assert torch.equal(one.values, other.values)


@pytest.mark.parametrize("compared", [1, 50])
def test_rows_are_full_and_values_are_cosines(compared: int) -> None:
    source, target, ties = problem(100, 400, distinct=300)
    found = nearest_approximate(source, target, 50, ties, 0, compared=compared)
    for side, mine, theirs in ((found.source, source, target), (found.target, target, source)):
        assert side.indices.shape == (len(mine), 50)
        for row, (indices, values) in enumerate(zip(side.indices, side.values, strict=True)):
            assert indices.unique().numel() == 50
            wanted = (theirs[indices].double() @ mine[row].double()).float()
            assert torch.equal(values, wanted)
            assert torch.equal(values, values.sort(descending=True).values)


def test_numbering_does_not_show() -> None:
    source, target, ties = problem(300, 500, 8)
    new = torch.randperm(500, generator=torch.Generator().manual_seed(3))
    found = nearest_approximate(source, target, 5, ties, 0, compared=80)
    moved = nearest_approximate(
        source, target[new], 5, Pair(ties.source, ties.target[new]), 0, compared=80
    )
    same = (new[moved.source.indices] == found.source.indices).float().mean()
    assert same > 0.999  # sums of centers are added in another order


def test_rows_of_zeros_crowd_no_list() -> None:
    """Most rows are zero: they lie in a list of their own, and are last to be looked at."""
    source, target, ties = problem(200, 1000, 8)
    target[100:] = 0.0
    exact = nearest(source, target, 3, ties, 0)
    found = nearest_approximate(source, target, 3, ties, 0, compared=90, spare=0)
    assert recall(found, exact).source > 0.9


def test_nobody_on_one_side() -> None:
    source, target, ties = problem(4, 0)
    found = nearest_approximate(source, target, 3, ties, 0)
    assert found.map(lambda side: tuple(side.indices.shape)) == Pair((4, 0), (0, 0))


def test_tells_how_far_it_is() -> None:
    source, target, ties = problem(50, 60)
    centers = list_centers(torch.cat([source, target]), 10, 3)
    vectors = tie_vectors(ties, 0)
    mine, order = lists_of(source, centers, vectors.source)
    theirs, other_order = lists_of(target, centers, vectors.target)
    calls: list[tuple[int, int]] = []
    search_lists(
        source[order],
        mine,
        [target[other_order]],
        [theirs],
        centers,
        3,
        16,
        40,
        lambda *call: calls.append(call),
    )
    assert calls == [(done, 11) for done in range(1, 12)]


@pytest.mark.parametrize("number", [torch.nan, torch.inf])
@pytest.mark.parametrize("side", [0, 1])
def test_numbers_that_are_none(side: int, number: float) -> None:
    source, target, ties = problem(300, 400, 8)
    (source, target)[side][-1, 2] = number
    with pytest.raises(ValueError, match=r"^embeddings must be finite\.$"):
        nearest_approximate(source, target, 5, ties, 0, compared=50)
