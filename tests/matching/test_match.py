"""What every way of matching keeps to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_similarities import NAN, NO_SEEDS, dense_scores, held, keys_of
from torch import Tensor

from clusterea.errors import InputError
from clusterea.matching import MATCHERS
from clusterea.sharded import match
from clusterea.types import Alignment, Pair

METHODS = pytest.mark.parametrize("method", MATCHERS)


def pairs(alignment: Alignment) -> Iterator[tuple[int, int]]:
    return zip(*alignment.links.T.tolist(), strict=True)


@METHODS
@settings(max_examples=30)
@given(dense_scores(), st.integers(0, 3))
def test_every_entity_is_somewhere(method: str, scores: Tensor, decided: int) -> None:
    """Linked, unmatched or a seed, and just one of these."""
    seeds = torch.arange(min(decided, *scores.shape)).repeat(2, 1).T.flip(0)
    found = match(held(scores), keys_of(scores), seeds, method=method)
    for side, size in enumerate(scores.shape):
        linked = found.links[:, side].tolist()
        alone = list(found.unmatched)[side].tolist()
        if method != "best" or side == 0:
            assert len(set(linked)) == len(linked)
        assert sorted([*set(linked), *alone, *seeds[:, side].tolist()]) == list(range(size))
    assert all(scores[link] == scores[link] for link in pairs(found))
    assert found.confidence.tolist() == sorted(found.confidence.tolist(), reverse=True)


def test_structural_entities_are_not_unmatched() -> None:
    scores = torch.tensor([[0.9, NAN, NAN], [NAN, NAN, NAN], [NAN, NAN, NAN]])
    never = Pair(np.array([1]), np.array([1, 2]))
    found = match(held(scores), keys_of(scores), NO_SEEDS, structural=never)
    assert list(pairs(found)) == [(0, 0)]
    assert found.unmatched.map(lambda side: side.tolist()) == Pair([2], [])


@METHODS
@settings(max_examples=30)
@given(dense_scores(), st.randoms(use_true_random=False))
def test_ids_do_not_matter(method: str, scores: Tensor, random: Any) -> None:
    keys, seeds = keys_of(scores), torch.tensor([[0, 0]])
    rows, columns = (torch.tensor(random.sample(range(n), n)) for n in scores.shape)
    shuffled = torch.empty_like(scores)
    shuffled[rows[:, None], columns] = scores
    new_keys = Pair(keys.source[rows.argsort()], keys.target[columns.argsort()])
    new_seeds = torch.stack([rows[seeds[:, 0]], columns[seeds[:, 1]]], 1)
    before = match(held(scores), keys, seeds, method=method)
    after = match(held(shuffled), new_keys, new_seeds, method=method)
    moved = torch.stack([rows[before.links[:, 0]], columns[before.links[:, 1]]], 1)
    assert after.links.equal(moved)
    assert after.confidence.equal(before.confidence)


@METHODS
def test_names_that_are_the_same_do_not_tell(method: str) -> None:
    """Keys are of names: the same on both sides for a true pair. Ties must not find that out."""
    scores = torch.ones(200, 200)
    keys = Pair(keys_of(scores).source, keys_of(scores).source)
    found = match(held(scores), keys, NO_SEEDS, method=method)
    assert len(found.links) == 200 or method == "mutual"
    assert sum(source == target for source, target in pairs(found)) < 8  # one, by chance
    assert found.confidence.tolist() == [0.5] * len(found.links)


@METHODS
def test_another_seed_decides_ties_another_way(method: str) -> None:
    scores = torch.ones(20, 20)
    one, other, again = (
        match(held(scores), keys_of(scores), NO_SEEDS, method=method, seed=seed)
        for seed in (0, 1, 0)
    )
    assert set(pairs(one)) != set(pairs(other))
    assert one.links.equal(again.links)


@METHODS
def test_names_with_one_key_are_still_linked_once(method: str) -> None:
    scores = torch.ones(3, 3)
    keys = Pair(torch.zeros(3, dtype=torch.int64), torch.zeros(3, dtype=torch.int64))
    found = match(held(scores), keys, NO_SEEDS, method=method)
    assert len(set(found.links[:, 0].tolist())) == len(found.links)
    assert method in ("best", "mutual") or len(found.links) == 3


@METHODS
@pytest.mark.parametrize("shape", [(0, 0), (3, 2), (1, 1)])
def test_no_cell_no_link(method: str, shape: tuple[int, int]) -> None:
    scores = torch.full(shape, NAN)
    found = match(held(scores), keys_of(scores), NO_SEEDS, method=method)
    assert len(found.links) == 0
    assert [side.numel() for side in found.unmatched] == list(shape)


@METHODS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_scores_of_any_precision(method: str, dtype: torch.dtype) -> None:
    scores = torch.eye(4, dtype=dtype)
    found = match(held(scores), keys_of(scores), NO_SEEDS.numpy(), method=method)
    assert set(pairs(found)) == {(i, i) for i in range(4)}
    assert found.confidence.tolist() == [1.0] * 4


def test_best_shares_a_target() -> None:
    scores = torch.tensor([[0.9, 0.1], [0.8, 0.7], [NAN, NAN]])
    found = match(held(scores), keys_of(scores), NO_SEEDS, method="best")
    assert set(pairs(found)) == {(0, 0), (1, 0)}
    assert found.unmatched.source.tolist() == [2]
    assert found.unmatched.target.tolist() == [1]


def test_an_unknown_way_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="unknown matching 'gredy'.*Did you mean 'greedy'"):
        match(held(torch.eye(2)), keys_of(torch.eye(2)), NO_SEEDS, method="gredy")


def test_keys_of_other_entities_are_refused() -> None:
    with pytest.raises(ValueError, match="ties must be a key for each of 2 and 2 entities. Got 3"):
        match(held(torch.eye(2)), keys_of(torch.eye(3)), NO_SEEDS)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@METHODS
def test_a_gpu_finds_the_same_links(method: str) -> None:
    draw = torch.Generator().manual_seed(0)
    scores = torch.randint(0, 9, (70, 50), generator=draw).float()
    scores[scores == 0] = NAN
    here = match(held(scores), keys_of(scores), torch.tensor([[4, 7]]), method=method)
    there = match(held(scores.cuda()), keys_of(scores), torch.tensor([[4, 7]]), method=method)
    assert there.links.cpu().equal(here.links)
    torch.testing.assert_close(there.confidence.cpu(), here.confidence)
