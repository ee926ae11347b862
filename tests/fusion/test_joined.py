"""Candidates by a join, against an obvious loop over the graphs."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from clusterea.config import FusionConfig
from clusterea.engines import InMemory
from clusterea.fusion.undecided import Undecided, undecided
from clusterea.numerics import block_sizes
from clusterea.numerics.knn import Nearest, Neighbors
from clusterea.sharded.search import joined as joined_shards
from clusterea.types import IntArray, KnowledgeGraph, Pair
from small_graphs import random_pair
from whole_runs import cut_neighbors, cut_rows, joined, nearest, vectors_of

SIZE = 30
SEEDS = np.stack([np.arange(8), np.arange(8)[::-1]], 1)


def config(**changes: Any) -> FusionConfig:
    return FusionConfig(search="approximate", **changes)


def exact(entities: Undecided, k: int) -> Nearest:
    source, target = vectors_of(entities)
    return nearest(source, target, k, entities.keys, 0)


def searched(seed: int, k: int = 3, dim: int = 4) -> tuple[Undecided, Nearest, Nearest]:
    """The entities, all their neighbors, and what a poor search finds: every second of these."""
    draw = torch.Generator().manual_seed(seed)
    rows = Pair(*(normalize(torch.randn(SIZE, dim, generator=draw)) for _ in range(2)))
    keys = Pair(np.arange(SIZE), np.arange(SIZE) + SIZE)
    entities = undecided([rows], SEEDS, keys, 0)
    every = exact(entities, SIZE)
    poor = every.map(lambda side: Neighbors(side.indices[:, ::2], side.values[:, ::2]).first(k))
    return entities, every, poor


def neighbors(graph: KnowledgeGraph) -> dict[int, set[int]]:
    found: dict[int, set[int]] = defaultdict(set)
    for head, _, tail in graph.triples.tolist():
        if head != tail:
            found[head].add(tail)
            found[tail].add(head)
    return found


def joined_slowly(
    entities: Undecided, found: Nearest, graphs: Pair[KnowledgeGraph], hub: int
) -> dict[tuple[int, int], float]:
    """The score of each pair of rows."""
    around = graphs.map(neighbors)
    row_of = entities.entities.map(lambda side: {e: i for i, e in enumerate(side.tolist())})
    partners = [(s, t, 1.0) for s, t in SEEDS.tolist()]
    for row, target in enumerate(found.source.indices[:, 0].tolist()):
        if found.target.indices[target, 0] == row:
            pair = int(entities.entities.source[row]), int(entities.entities.target[target])
            partners.append((*pair, float(found.source.values[row, 0])))
    scores: dict[tuple[int, int], float] = defaultdict(float)
    for source, target, weight in partners:
        ends = around.source[source], around.target[target]
        product = len(ends[0]) * len(ends[1])
        if not 0 < product <= hub:
            continue
        for one in ends[0] & row_of.source.keys():
            for other in ends[1] & row_of.target.keys():
                pair = row_of.source[one], row_of.target[other]
                scores[pair] += weight / product**0.5
    return scores


def best_of(rows: Tensor, others: Tensor, columns: list[int], k: int) -> list[float]:
    values = (rows.double() @ others[columns].double().T).float()
    return sorted(values.tolist(), reverse=True)[:k]


@given(st.integers(0, 50), st.sampled_from([1, 2, 5, 50]), st.sampled_from([3, 20, 1000]))
def test_as_a_loop_over_partners(seed: int, most: int, hub: int) -> None:
    graphs = random_pair(seed, entities=SIZE, triples=40)
    entities, _, found = searched(seed)
    result = joined(found, entities, graphs, SEEDS, config(search_joined=most, search_hub=hub))
    scores = joined_slowly(entities, found, graphs, hub)
    both = vectors_of(entities)
    sides = (
        (found.source, result.source, both, scores),
        (
            found.target,
            result.target,
            both.swap(),
            {(t, s): score for (s, t), score in scores.items()},
        ),
    )
    for before, after, vectors, pairs in sides:
        assert after.indices.shape == before.indices.shape
        for row, had in enumerate(before.indices.tolist()):
            added = {t: score for (s, t), score in pairs.items() if s == row and t not in had}
            ranked = sorted(added, key=lambda t: -added[t])
            if len(ranked) > most and abs(added[ranked[most - 1]] - added[ranked[most]]) < 1e-6:
                continue  # a tie at the limit
            expected = best_of(
                vectors.source[row], vectors.target, [*had, *ranked[:most]], len(had)
            )
            assert after.values[row].tolist() == pytest.approx(expected, abs=1e-6)
            own = vectors.target[after.indices[row]] @ vectors.source[row]
            assert own.tolist() == pytest.approx(expected, abs=1e-6)
            assert len({*after.indices[row].tolist()}) == len(had)


def test_it_finds_neighbors_that_the_search_missed() -> None:
    """Twin graphs, in which every pair shares the partners of its neighbors."""
    one = random_pair(0, entities=SIZE, triples=60).source
    turned = KnowledgeGraph(one.triples.copy(), one.num_entities, one.num_relations)
    seeds: IntArray = np.stack([np.arange(20), np.arange(20)], 1)
    draw = torch.Generator().manual_seed(0)
    rows = normalize(torch.randn(SIZE, 16, generator=draw))
    keys = Pair(np.arange(SIZE), np.arange(SIZE) + SIZE)
    entities = undecided([Pair(rows, rows)], seeds, keys, 0)
    every = exact(entities, 3)
    missed = every.map(lambda side: Neighbors(side.indices[:, 1:], side.values[:, 1:]))
    found = joined(missed, entities, Pair(one, turned), seeds, config())
    has_neighbors = [bool(neighbors(one)[int(e)]) for e in entities.entities.source]
    is_found = found.source.indices[:, 0] == every.source.indices[:, 0]
    assert is_found[has_neighbors].double().mean() > 0.8
    assert (missed.source.indices[:, 0] != every.source.indices[:, 0]).all()


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_blocks_change_nothing(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = random_pair(1, entities=SIZE, triples=80)
    entities, _, found = searched(1)
    whole = joined(found, entities, graphs, SEEDS, config())
    monkeypatch.setitem(block_sizes.BLOCK_SIZES, "joined", {"cpu": block})
    parts = joined(found, entities, graphs, SEEDS, config())
    for one, other in zip(whole, parts, strict=True):
        assert torch.equal(one.indices, other.indices)
        assert torch.equal(one.values, other.values)


def test_nothing_is_added_to_an_exact_search() -> None:
    graphs = random_pair(2, entities=SIZE, triples=80)
    entities, every, _ = searched(2)
    whole = every.map(lambda side: side.first(5))
    found = joined(whole, entities, graphs, SEEDS, config())
    for one, other in zip(whole, found, strict=True):
        assert torch.equal(one.indices, other.indices)
        assert torch.equal(one.values, other.values)


@pytest.mark.parametrize("triples", [0, 40])
def test_nothing_to_join(triples: int) -> None:
    graphs = random_pair(3, entities=SIZE, triples=triples)
    entities, _, found = searched(3)
    engine, off = InMemory(), config(search_joined=0)
    shards = found.map(lambda side: cut_neighbors(side, engine))
    vectors = vectors_of(entities).map(lambda side: cut_rows(side, engine))
    assert joined_shards(engine, shards, vectors, entities, graphs, SEEDS, off) is shards
    no_hub = joined(found, entities, graphs, SEEDS, config(search_hub=0))
    for one, other in zip(found, no_hub, strict=True):
        assert torch.equal(one.indices, other.indices)
