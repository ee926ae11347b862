"""Neighbor evidence in shards: the same bytes in any cut.

What it computes is tested in `test_support.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cut_engines import CUTS, cutting, small_tiles
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.engines import InMemory
from clusterea.types import IntArray, KnowledgeGraph, Pair, Similarity
from small_graphs import random_pair
from whole_runs import supported

Problem = tuple[Similarity, Pair[Tensor], Pair[KnowledgeGraph], IntArray]


def problem(sizes: tuple[int, int], seed: int = 0, share: float = 0.2) -> Problem:
    """A plan of undecided entities, which follow the seeds; it has ties and faint cells."""
    rng = np.random.default_rng(seed)
    largest, num_seeds = max(*sizes, 1), 20
    graphs = random_pair(seed, entities=largest + num_seeds, triples=6 * largest)
    dense = rng.random(sizes) ** 3
    dense[rng.random(sizes) < 0.3] *= 1e-7
    dense = np.where(rng.random(sizes) < 0.1, 0.25, dense)
    dense *= 0.9 / max(dense.sum(0).max(initial=1e-9), dense.sum(1).max(initial=1e-9))
    kept = rng.random(sizes) < share
    plan = Similarity(
        torch.from_numpy(np.concatenate([[0], kept.sum(1).cumsum()])),
        torch.from_numpy(kept.nonzero()[1]),
        torch.from_numpy(dense[kept]).float(),
        Pair(*sizes),
    )
    seeds = np.stack([np.arange(num_seeds), rng.permutation(num_seeds)], 1)
    entities = Pair(*sizes).map(lambda size: torch.from_numpy(rng.permutation(size) + num_seeds))
    return plan, entities, graphs, seeds


def config(**changes: Any) -> FusionConfig:
    return FusionConfig(sinkhorn_rounds=9, **changes)


def same(one: Similarity, other: Similarity) -> bool:
    return (
        torch.equal(one.row_offsets, other.row_offsets)
        and torch.equal(one.columns, other.columns)
        and torch.equal(one.values, other.values)
    )


@CUTS
@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_same_bytes(
    shards: int,
    is_out_of_core: bool,
    rounds: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_tiles(monkeypatch)
    given = problem((150, 115))
    wanted = supported(*given, config(support_rounds=rounds))
    with cutting(shards, is_out_of_core, tmp_path) as engine:
        found = supported(*given, config(support_rounds=rounds), engine=engine)
    assert same(found, wanted)
    assert same(wanted, given[0]) == (rounds == 0)


@settings(max_examples=40)
@given(
    rows=st.integers(0, 40),
    columns=st.integers(0, 40),
    share=st.sampled_from([0.0, 0.05, 1.0]),
    tile=st.sampled_from([1, 3, 8, 64]),
    shards=st.integers(2, 9),
)
def test_cuts_of_any_size(rows: int, columns: int, share: float, tile: int, shards: int) -> None:
    given = problem((rows, columns), rows, share)
    wanted = supported(*given, config())
    with pytest.MonkeyPatch.context() as patch:
        small_tiles(patch, tile)
        assert same(supported(*given, config(), engine=InMemory(shards)), wanted)


def test_a_column_that_two_shards_want_equally(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best cell of a column is in two shards, so neither row is its partner."""
    small_tiles(monkeypatch, 1)
    plan, entities, graphs, seeds = problem((4, 3), share=0.0)
    plan = Similarity(
        torch.tensor([0, 1, 2, 3, 4]),
        torch.tensor([0, 0, 1, 2]),
        torch.tensor([0.4, 0.4, 0.8, 0.7]),
        plan.num_entities,
    )
    wanted = supported(plan, entities, graphs, seeds, config())
    for shards in (2, 4):
        engine = InMemory(shards)
        assert same(supported(plan, entities, graphs, seeds, config(), engine=engine), wanted)


def test_without_cells_the_plan_stays() -> None:
    given = problem((5, 4), share=0.0)
    found = supported(*given, config(), engine=InMemory(2))
    assert found.num_cells == 0
    assert found.values.dtype == torch.float32


def test_progress_counts_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    small_tiles(monkeypatch)
    calls: list[tuple[int, int]] = []
    supported(
        *problem((40, 50)),
        config(support_rounds=3),
        lambda *call: calls.append(call),
        engine=InMemory(3),
    )
    assert calls == [(1, 3), (2, 3), (3, 3)]
