"""Pseudo-seeds against a loop: each other's best, above the threshold, whatever their ids."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_similarities import NAN, dense_scores, keys_of, open_cells_of
from torch import Tensor

from clusterea.matching import pseudo_seeds
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
    found = pseudo_seeds(open_cells_of(scores, seeds, seed), threshold=threshold)
    assert found.dtype == torch.int64
    assert listed(found) == twin(scores, keys, seeds, threshold, seed)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 2)])
def test_no_cells(shape: tuple[int, int]) -> None:
    scores = torch.full(shape, NAN)
    found = pseudo_seeds(open_cells_of(scores), threshold=0.0)
    assert found.shape == (0, 2)
    assert found.dtype == torch.int64


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_finds_the_same() -> None:
    draw = torch.Generator().manual_seed(0)
    scores = torch.randint(0, 9, (70, 50), generator=draw).float() / 8
    scores[scores == 0] = NAN
    seeds = torch.tensor([[4, 7]])
    here = pseudo_seeds(open_cells_of(scores, seeds), threshold=0.5)
    there = pseudo_seeds(open_cells_of(scores.cuda(), seeds), threshold=0.5)
    assert torch.equal(there.cpu(), here)


def test_chances_decide_instead_of_scores() -> None:
    scores = torch.tensor([[0.9, 0.1], [0.2, 0.6]])
    asked: list[tuple[list[tuple[int, int]], list[float]]] = []

    def chances(pairs: Tensor, given: Tensor) -> Tensor:
        asked.append((listed(pairs), given.tolist()))
        return 1 - given

    found = pseudo_seeds(open_cells_of(scores), threshold=0.3, chances=chances)
    assert listed(found) == [(1, 1)]
    ((pairs, given),) = asked
    assert dict(zip(pairs, given, strict=True)) == pytest.approx({(0, 0): 0.9, (1, 1): 0.6})


def test_the_most_probable_if_none_exceeds_the_threshold() -> None:
    scores = torch.diag(torch.tensor([0.1, 0.3, 0.2, 0.4]))
    scores[scores == 0] = NAN

    def found(threshold: float, otherwise: int) -> set[tuple[int, int]]:
        pairs = pseudo_seeds(open_cells_of(scores), threshold=threshold, otherwise=otherwise)
        return set(listed(pairs))

    assert found(0.5, 0) == set()
    assert found(0.5, 2) == {(1, 1), (3, 3)}
    assert found(0.5, 9) == {(0, 0), (1, 1), (2, 2), (3, 3)}
    assert found(0.35, 2) == {(3, 3)}  # some exceed it
