"""Greedy and stable matching against their textbook twins."""

from __future__ import annotations

import importlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_similarities import cells_of, dense_scores, links_of, listed, open_cells_of
from torch import Tensor

from clusterea.matching.cells import Cells, OpenCells
from clusterea.matching.greedy import greedy
from clusterea.matching.mutual import mutual
from clusterea.matching.stable import stable
from clusterea.numerics.block_sizes import BLOCK_SIZES

MODULE = importlib.import_module("clusterea.matching.greedy")


def walked(cells: Cells) -> set[tuple[int, int]]:
    """From the highest to the lowest, each entity once."""
    taken: set[tuple[int, int]] = set()
    for _, _, source, target in sorted(listed(cells), reverse=True):
        if all(source != s and target != t for s, t in taken):
            taken.add((source, target))
    return taken


def gale_shapley(cells: Cells) -> set[tuple[int, int]]:
    """Sources propose from their best downwards; a target keeps the best proposal so far."""
    proposals = sorted(listed(cells))  # the best is popped first
    waiting = {source: [p for p in proposals if p[2] == source] for _, _, source, _ in proposals}
    free = list(waiting)
    held: dict[int, tuple[float, int, int, int]] = {}
    while free:
        source = free.pop()
        if not waiting[source]:
            continue
        offer = waiting[source].pop()
        rival = held.get(offer[3])
        held[offer[3]] = max(offer, rival) if rival else offer
        if rival:
            free.append(min(offer, rival)[2])  # who was turned down proposes again
    return {(source, target) for _, _, source, target in held.values()}


@given(
    dense_scores(),
    st.sampled_from([1, 4, 1 << 17]),
    st.sampled_from([1, 9, 1 << 19]),
    st.sampled_from([0.0, 0.97]),
)
def test_rounds_take_what_a_walk_takes(
    scores: Tensor, few: int, chosen: int, progress: float
) -> None:
    cells = cells_of(scores)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODULE, "FEW", few)
        patch.setitem(BLOCK_SIZES["chosen"], "cpu", chosen)
        patch.setattr(MODULE, "PROGRESS", progress)
        assert links_of(greedy(open_cells_of(scores))) == walked(cells)


def test_a_chain_is_walked_to_its_end() -> None:
    """Each link of the chain frees the next: the most rounds that there can be."""
    size = 60
    scores = torch.full((size, size), torch.nan)
    scores.diagonal()[:] = torch.arange(size, 0, -1) * 2.0
    scores.diagonal(1)[:] = torch.arange(size, 1, -1) * 2.0 - 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODULE, "FEW", 1)
        assert links_of(greedy(open_cells_of(scores))) == {(i, i) for i in range(size)}


def test_slow_rounds_end_even_if_many_cells_are_left() -> None:
    size, rounds = 200, 0
    scores = torch.full((size, size), torch.nan)
    scores.diagonal()[:] = torch.arange(size, 0, -1) * 2.0
    scores.diagonal(1)[:] = torch.arange(size, 1, -1) * 2.0 - 1

    def counted(cells: OpenCells) -> Cells:
        nonlocal rounds
        rounds += 1
        return mutual(cells)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODULE, "FEW", 1)
        patch.setitem(BLOCK_SIZES["chosen"], "cpu", 1)
        patch.setattr(MODULE, "MANY", 1)
        patch.setattr(MODULE, "mutual", counted)
        assert links_of(greedy(open_cells_of(scores))) == {(i, i) for i in range(size)}
    assert rounds == MODULE.PATIENCE


@given(dense_scores())
def test_stable_is_gale_and_shapleys(scores: Tensor) -> None:
    cells = cells_of(scores)
    assert links_of(stable(open_cells_of(scores))) == gale_shapley(cells)


@given(dense_scores())
def test_mutual_bests_are_first_on_both_sides(scores: Tensor) -> None:
    cells = cells_of(scores)
    all_of = listed(cells)
    wanted = {
        each[2:]
        for each in all_of
        if each == max(e for e in all_of if e[2] == each[2])
        and each == max(e for e in all_of if e[3] == each[3])
    }
    assert links_of(mutual(open_cells_of(scores))) == wanted
