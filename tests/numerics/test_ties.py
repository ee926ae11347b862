"""Ties: the same order everywhere for one seed, another for another, and nobody favored."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clusterea.numerics.ties import DIMENSIONS, mixed, pair_hash, tie_vectors
from clusterea.types import Pair

KEYS = torch.arange(2000)  # as bad as keys can be: their bits hardly differ


def pairs(seed: int, rows: int = 60, columns: int = 50) -> Tensor:
    return pair_hash(KEYS[:rows, None], KEYS[None, :columns], seed)


def test_the_numbers_stay_what_they_are() -> None:
    # Results that are compared across versions rest on them.
    assert mixed(torch.tensor([0, 1, -1]), 0).tolist() == [
        -2152535657050944081,
        -7995527694508729151,
        -1956407806741107680,
    ]


def test_another_seed_another_order() -> None:
    assert not torch.equal(pairs(0).argsort(1), pairs(1).argsort(1))
    vectors = [tie_vectors(Pair(KEYS, KEYS), seed) for seed in range(2)]
    products = [side.source[:60] @ side.target[:50].T for side in vectors]
    assert not torch.equal(products[0].argsort(1), products[1].argsort(1))


def test_no_two_pairs_share_a_number() -> None:
    assert pairs(0, 500, 500).unique().numel() == 500 * 500  # type: ignore[no-untyped-call]
    assert not torch.equal(pairs(0, 50, 50), pairs(0, 50, 50).T)


def test_a_pair_is_told_by_its_keys_and_not_by_its_place() -> None:
    shuffled = torch.randperm(len(KEYS), generator=torch.Generator().manual_seed(0))
    keys = Pair(KEYS[shuffled], KEYS)
    torch.testing.assert_close(
        tie_vectors(keys, 1).source, tie_vectors(Pair(KEYS, KEYS), 1).source[shuffled]
    )


def best_columns(scores: Tensor) -> Tensor:
    """(columns,): how many rows have their largest score in each column."""
    return scores.argmax(1).bincount(minlength=scores.shape[1])


def test_no_column_is_favored() -> None:
    wins = best_columns(pairs(0, 2000, 20))
    assert wins.sum() == 2000
    assert wins.min() > 60  # 100 expected, deviation 10
    assert wins.max() < 140


def test_the_diagonal_is_not_favored() -> None:
    """In public datasets the truth has the same name, or the same id: its key must not attract."""
    keys = Pair(KEYS, KEYS)
    vectors = tie_vectors(keys, 0)
    products = vectors.source @ vectors.target.T
    hashes = pair_hash(KEYS[:, None], KEYS[None, :], 0)
    middle = (len(KEYS) - 1) / 2  # the mean rank of a fair draw
    deviation = len(KEYS) / 12**0.5 / len(KEYS) ** 0.5
    for scores in (products, hashes):
        ranks = (scores > scores.diagonal().unsqueeze(1)).sum(1).double()
        assert abs(float(ranks.mean()) - middle) < 4 * deviation


def test_vectors_fill_their_range() -> None:
    for side in tie_vectors(Pair(KEYS, KEYS), 0):
        assert side.shape == (len(KEYS), DIMENSIONS)
        assert side.dtype == torch.float32
        assert -1 <= float(side.min()) < -0.99
        assert 0.99 < float(side.max()) < 1
        assert side.mean(0).abs().max() < 0.06  # deviation 0.013
        correlation = torch.corrcoef(side.T) - torch.eye(DIMENSIONS)
        assert correlation.abs().max() < 0.1


def test_products_of_vectors_are_exact_in_float64() -> None:
    vectors = tie_vectors(Pair(KEYS, KEYS), 0).map(lambda side: side[:40].double())
    forwards = vectors.source @ vectors.target.T
    backwards = vectors.source.flip(1) @ vectors.target.flip(1).T
    assert torch.equal(forwards, backwards)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_agrees_to_the_last_bit() -> None:
    keys = torch.randint(-(2**63), 2**63 - 1, (1000,), generator=torch.Generator().manual_seed(0))
    on_gpu = keys.cuda()
    assert torch.equal(mixed(keys, 5), mixed(on_gpu, 5).cpu())
    assert torch.equal(
        pair_hash(keys[:, None], keys[None], 5), pair_hash(on_gpu[:, None], on_gpu[None], 5).cpu()
    )
    for here, there in zip(
        tie_vectors(Pair(keys, keys), 5), tie_vectors(Pair(on_gpu, on_gpu), 5), strict=True
    ):
        assert torch.equal(here, there.cpu())
