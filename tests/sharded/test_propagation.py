"""Label propagation in shards: the same bytes in any cut.

What it computes is tested in `test_label_propagation.py`.
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

from clusterea.config import PropagationConfig
from clusterea.engines import InMemory
from clusterea.sharded import propagate
from clusterea.training import EncoderProgress
from clusterea.types import AlignmentTask, Pair
from small_graphs import graph, random_pair


def quick(**changes: Any) -> PropagationConfig:
    """More labels and features than a slab has, and no multiple of it."""
    return PropagationConfig(**{"dimension": 150, "features": 270, "rounds": 2, **changes})


def task_of(seed: int, entities: int, triples: int, num_seeds: int) -> AlignmentTask:
    """Unrelated graphs. Some entities are in no triple, so no label reaches them."""
    graphs = random_pair(seed, entities=entities, triples=triples)
    ids = np.random.default_rng(seed).permutation(entities)[:num_seeds]
    return AlignmentTask(graphs, np.stack([ids, ids[::-1]], 1))


def same(one: Pair[Tensor], other: Pair[Tensor]) -> bool:
    return all(torch.equal(*side) for side in one.zip(other))


@CUTS
@pytest.mark.parametrize("rounds", [0, 2])
def test_same_bytes(
    shards: int,
    is_out_of_core: bool,
    rounds: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_tiles(monkeypatch)
    task, config = task_of(1, 130, 300, 40), quick(rounds=rounds)
    wanted = propagate(task, config, engine=InMemory(1))
    with cutting(shards, is_out_of_core, tmp_path) as engine:
        found = propagate(task, config, engine=engine)
    assert same(found, wanted)
    assert not found.source.any(1).all()


@settings(max_examples=40)
@given(
    entities=st.integers(2, 60),
    tile=st.sampled_from([1, 2, 5, 8, 64]),
    shards=st.integers(2, 9),
    degree=st.integers(0, 3),
)
def test_cuts_of_any_size(entities: int, tile: int, shards: int, degree: int) -> None:
    # Rows of whole cache lines: a product may round otherwise where its rows begin elsewhere.
    task, config = task_of(3, entities, degree * entities, 2), quick(dimension=32, features=48)
    with pytest.MonkeyPatch.context() as patch:
        small_tiles(patch, tile)
        wanted = propagate(task, config, engine=InMemory(1))
        assert same(propagate(task, config, engine=InMemory(shards)), wanted)


def test_sides_of_other_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards are cut across the two sides, one of which has fewer rows than a tile."""
    small_tiles(monkeypatch)
    small, large = graph([(0, 0, 1), (2, 0, 1)], 3, 1), random_pair(2, entities=90).source
    task = AlignmentTask(Pair(small, large), np.array([[0, 4], [1, 70]]))
    for each in (task, task.swap()):
        wanted = propagate(each, quick(), engine=InMemory(1))
        assert same(propagate(each, quick(), engine=InMemory(4)), wanted)


def test_progress_does_not_depend_on_the_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    small_tiles(monkeypatch)
    seen: list[EncoderProgress] = []
    propagate(task_of(1, 60, 90, 9), quick(), progress=seen.append, engine=InMemory(3))
    assert [(each.step, each.steps) for each in seen] == [(1, 3), (2, 3), (3, 3)]
