"""Pseudo-seeds against a loop: each other's best, above the threshold, whatever their ids."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_similarities import NAN, NO_SEEDS, dense_scores, keys_of, sparse
from torch import Tensor

from clusterea.matching import match, pseudo_seeds
from clusterea.numerics.ties import pair_hash
from clusterea.types import Pair

THRESHOLDS = st.sampled_from([-1.0, 0.0, 0.25, 0.4, 0.5, 1.0])


def some_seeds(scores: Tensor, count: int) -> Tensor:
    """(n, 2): the first few sources with the last few targets."""
    count = min(count, *scores.shape)
    return torch.stack([torch.arange(count), scores.shape[1] - 1 - torch.arange(count)], 1)


def twin(
    scores: Tensor, keys: Pair[Tensor], seeds: Tensor, threshold: float, seed: int
) -> list[tuple[int, int]]:
    """Those who are the first of their row and of their column, by rising hash."""
    hashes = pair_hash(keys.source[:, None], keys.target[None, :], seed).tolist()
    taken = Pair(set(seeds[:, 0].tolist()), set(seeds[:, 1].tolist()))
    table = scores.tolist()
    cells = [
        (i, j)
        for i, row in enumerate(table)
        for j, score in enumerate(row)
        if score == score and i not in taken.source and j not in taken.target
    ]

    def rank(cell: tuple[int, int]) -> tuple[float, int]:
        i, j = cell
        return table[i][j], hashes[i][j]

    chosen = [
        (i, j)
        for i, j in cells
        if table[i][j] > threshold
        and (i, j) == max((cell for cell in cells if cell[0] == i), key=rank)
        and (i, j) == max((cell for cell in cells if cell[1] == j), key=rank)
    ]
    return sorted(chosen, key=lambda cell: hashes[cell[0]][cell[1]])


def listed(links: Tensor) -> list[tuple[int, int]]:
    return list(zip(*links.T.tolist(), strict=True))


@given(dense_scores(), st.integers(0, 3), THRESHOLDS, st.integers(0, 4))
def test_is_what_the_loop_finds(scores: Tensor, decided: int, threshold: float, seed: int) -> None:
    keys, seeds = keys_of(scores), some_seeds(scores, decided)
    found = pseudo_seeds(sparse(scores), keys, seeds, threshold=threshold, seed=seed)
    assert found.dtype == torch.int64
    assert listed(found) == twin(scores, keys, seeds, threshold, seed)


@given(dense_scores(), st.integers(0, 3), THRESHOLDS)
def test_one_to_one_and_none_of_the_seeds(scores: Tensor, decided: int, threshold: float) -> None:
    seeds = some_seeds(scores, decided)
    found = pseudo_seeds(sparse(scores), keys_of(scores), seeds, threshold=threshold)
    for side in range(2):
        ends = [*found[:, side].tolist(), *seeds[:, side].tolist()]
        assert len(set(ends)) == len(ends)
    assert all(scores[link] > threshold for link in listed(found))


@given(dense_scores(), st.integers(0, 3), st.randoms(use_true_random=False))
def test_ids_do_not_matter(scores: Tensor, decided: int, random: Any) -> None:
    """The same pairs, and in the same order: what is drawn from them is the same too."""
    keys, seeds = keys_of(scores), some_seeds(scores, decided)
    rows, columns = (torch.tensor(random.sample(range(n), n)) for n in scores.shape)
    shuffled = torch.empty_like(scores)
    shuffled[rows[:, None], columns] = scores
    new_keys = Pair(keys.source[rows.argsort()], keys.target[columns.argsort()])
    new_seeds = torch.stack([rows[seeds[:, 0]], columns[seeds[:, 1]]], 1)
    before = pseudo_seeds(sparse(scores), keys, seeds, threshold=0.2)
    after = pseudo_seeds(sparse(shuffled), new_keys, new_seeds, threshold=0.2)
    moved = torch.stack([rows[before[:, 0]], columns[before[:, 1]]], 1)
    assert torch.equal(after, moved)


@given(dense_scores(), st.integers(0, 3))
def test_without_a_threshold_they_are_the_mutual_matches(scores: Tensor, decided: int) -> None:
    keys, seeds = keys_of(scores), some_seeds(scores, decided)
    found = pseudo_seeds(sparse(scores), keys, seeds, threshold=-9.0)
    matched = match(sparse(scores), keys, seeds, method="mutual")
    assert set(listed(found)) == set(listed(matched.links))


def test_a_higher_threshold_keeps_a_part() -> None:
    scores = torch.rand(60, 50, generator=torch.Generator().manual_seed(0))
    found = [
        listed(pseudo_seeds(sparse(scores), keys_of(scores), NO_SEEDS, threshold=threshold))
        for threshold in (0.0, 0.98, 0.99, 1.0)
    ]
    for more, fewer in pairwise(found):
        assert len(more) > len(fewer)
        assert [link for link in more if link in set(fewer)] == fewer  # in the same order
    assert not found[-1]  # a score must exceed it


def test_what_exceeds_but_is_not_mutual_stays_out() -> None:
    scores = torch.tensor([[0.9, 0.8], [0.95, NAN]])
    found = pseudo_seeds(sparse(scores), keys_of(scores), NO_SEEDS, threshold=0.5)
    assert listed(found) == [(1, 0)]
    # Once 1 and its partner are known, 0 has but the other left.
    seeds = torch.tensor([[1, 0]])
    found = pseudo_seeds(sparse(scores), keys_of(scores), seeds.numpy(), threshold=0.5)
    assert listed(found) == [(0, 1)]


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 2)])
def test_no_cells(shape: tuple[int, int]) -> None:
    scores = torch.full(shape, NAN)
    found = pseudo_seeds(sparse(scores), keys_of(scores), NO_SEEDS, threshold=0.0)
    assert found.shape == (0, 2)
    assert found.dtype == torch.int64


def test_everybody_is_a_seed() -> None:
    scores = torch.eye(4)
    seeds = torch.arange(4).repeat(2, 1).T
    assert not len(pseudo_seeds(sparse(scores), keys_of(scores), seeds, threshold=0.0))


def test_another_seed_decides_ties_another_way() -> None:
    scores = torch.ones(30, 30)
    one, other, again = (
        pseudo_seeds(sparse(scores), keys_of(scores), NO_SEEDS, threshold=0.5, seed=seed)
        for seed in (0, 1, 0)
    )
    assert set(listed(one)) != set(listed(other))
    assert torch.equal(one, again)


def test_names_that_are_the_same_do_not_tell() -> None:
    scores = torch.ones(200, 200)
    keys = Pair(keys_of(scores).source, keys_of(scores).source)
    found = pseudo_seeds(sparse(scores), keys, NO_SEEDS, threshold=0.5)
    assert sum(source == target for source, target in listed(found)) < 4


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_finds_the_same() -> None:
    draw = torch.Generator().manual_seed(0)
    scores = torch.randint(0, 9, (70, 50), generator=draw).float() / 8
    scores[scores == 0] = NAN
    seeds = torch.tensor([[4, 7]])
    here = pseudo_seeds(sparse(scores), keys_of(scores), seeds, threshold=0.5)
    there = pseudo_seeds(sparse(scores.cuda()), keys_of(scores), seeds, threshold=0.5)
    assert torch.equal(there.cpu(), here)


def test_chances_decide_instead_of_scores() -> None:
    scores = torch.tensor([[0.9, 0.1], [0.2, 0.6]])
    asked: list[tuple[list[tuple[int, int]], list[float]]] = []

    def chances(pairs: Tensor, given: Tensor) -> Tensor:
        asked.append((listed(pairs), given.tolist()))
        return 1 - given

    found = pseudo_seeds(sparse(scores), keys_of(scores), NO_SEEDS, threshold=0.3, chances=chances)
    assert listed(found) == [(1, 1)]
    ((pairs, given),) = asked
    assert dict(zip(pairs, given, strict=True)) == pytest.approx({(0, 0): 0.9, (1, 1): 0.6})
