"""Rejected pairs have no cell, in any view, and leave their share to other candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clusterea.sharded import fuse
from clusterea.types import NO_LINKS, IntArray, Similarity
from dense_fusion import cells_of, problem, quick


def fused(rejected: IntArray = NO_LINKS, **settings: Any) -> Similarity:
    given = problem(0)
    return fuse(
        given.encodings,
        given.partitions,
        given.seeds,
        given.keys,
        quick(**settings),
        rejected=rejected,
    )


def best_pairs(similarity: Similarity, count: int) -> IntArray:
    cells = cells_of(similarity)
    best: dict[int, int] = {}
    for source, target in sorted(cells, key=lambda cell: -cells[cell]):
        best.setdefault(source, target)
    return np.array([*best.items()][:count])


@pytest.mark.parametrize("views", [("sinkhorn",), ("global",), ("local",), ("local", "global")])
@pytest.mark.parametrize("csls", [False, True])
def test_they_have_no_cell(views: tuple[str, ...], csls: bool) -> None:
    rejected = best_pairs(fused(views=views, csls=csls), 5)
    found = cells_of(fused(rejected, views=views, csls=csls))
    assert found
    assert not {*map(tuple, rejected.tolist())} & found.keys()


def test_other_candidates_take_their_share() -> None:
    before = fused(views=("sinkhorn",))
    rejected = best_pairs(before, 5)
    sums = [
        np.bincount(each.rows().numpy(), each.values.numpy(), minlength=each.num_entities.source)
        for each in (before, fused(rejected, views=("sinkhorn",)))
    ]
    kept = sum(
        value for cell, value in cells_of(before).items() if cell not in map(tuple, rejected)
    )
    assert sums[1].sum() > kept


def test_pairs_that_are_no_candidates_change_nothing() -> None:
    before = cells_of(fused(views=("sinkhorn",)))
    given = problem(0)
    every = {(i, j) for i in range(len(given.keys.source)) for j in range(len(given.keys.target))}
    others = sorted(every - before.keys())
    assert others
    assert cells_of(fused(np.array(others[:5]), views=("sinkhorn",))) == before
