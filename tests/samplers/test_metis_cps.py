"""METIS-CPS: seeds tied and cut as LargeEA does, and parts paired by the seeds they share."""

from __future__ import annotations

import sys
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from planted import settings, unrelated

from clusterea.graph.metis import SimpleGraph, metis
from clusterea.samplers import Resources
from clusterea.samplers.metis_cps import HEAVY, _paired, metis_cps
from clusterea.types import AlignmentTask, IntArray, KnowledgeGraph, Pair
from small_graphs import graph

# Target: 0-1-2-3-4-5 in a line, and 1-4. Seeds 0, 1, 3 are of part 0, seeds 4 and 5 of part 1.
LINE = graph([(0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 0, 4), (4, 0, 5), (1, 0, 4), (4, 1, 3)], 6, 2)
SEEDS = np.array([[0, 0], [1, 1], [2, 3], [3, 4], [4, 5]])
PARTS = np.array([0, 0, 0, 1, 1, 1])


def fixed_cut(graph: KnowledgeGraph, num_parts: int, seed: int) -> IntArray:
    return PARTS


def test_edges_between_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[tuple[int, int], int] = {}

    def spy(graph: SimpleGraph, num_parts: int, seed: int, weights: IntArray) -> IntArray:
        ends = zip(graph.owners().tolist(), graph.neighbors.tolist(), strict=True)
        seen.update(zip(ends, weights.tolist(), strict=True))
        return metis(graph, num_parts, seed, weights)

    monkeypatch.setattr(sys.modules[metis_cps.__module__], "metis", spy)
    task = AlignmentTask(Pair(graph([], 6, 1), LINE), SEEDS)
    nothing = Pair(torch.empty(6, 0), torch.empty(6, 0))
    metis_cps(task, nothing, settings(num_batches=2), Resources(cut=fixed_cut))
    wanted = {
        (0, 1): HEAVY,  # two seeds of part 0, joined already
        (0, 3): HEAVY,  # tied now
        (4, 5): HEAVY,
        (1, 2): 1,  # 2 is no seed
        (2, 3): 1,
    }  # 3-4 and 1-4 join seeds of different parts: gone
    assert seen == wanted | {(tail, head): weight for (head, tail), weight in wanted.items()}


def test_parts_follow_their_seeds_whatever_metis_calls_them() -> None:
    # Two cliques of five, which the seeds put into parts 1 and 0.
    pairs = [(a, 0, b) for a in range(10) for b in range(10) if a < b and (a < 5) == (b < 5)]
    clique = graph([*pairs, (0, 0, 5)], 10, 1)
    for turn in (0, 1):
        parts = (np.arange(10) // 5 + turn) % 2
        seeds = np.array([[0, 1], [1, 2], [7, 8]])
        task = AlignmentTask(Pair(clique, clique), seeds)
        place = Resources(cut=lambda graph, num_parts, seed, parts=parts: parts)  # type: ignore[misc]
        nothing = Pair(torch.empty(10, 0), torch.empty(10, 0))
        labels = metis_cps(task, nothing, settings(num_batches=2), place).labels
        assert labels.target.tolist() == parts.tolist()


@given(st.integers(1, 5), st.integers(0, 1000))
def test_parts_are_paired_so_that_most_seeds_stay_together(parts: int, seed: int) -> None:
    shared = np.random.default_rng(seed).integers(0, 6, (parts, parts))
    partner = _paired(shared)  # of each target part
    assert sorted(partner.tolist()) == list(range(parts))
    kept = sum(int(shared[partner[part], part]) for part in range(parts))
    assert kept == max(
        sum(int(shared[row, part]) for part, row in enumerate(rows))
        for rows in permutations(range(parts))
    )


def test_no_embedding_is_read() -> None:
    task, embeddings = unrelated()
    one = metis_cps(task, embeddings, settings(), Resources())
    other = metis_cps(task, embeddings.map(torch.zeros_like), settings(), Resources())
    assert torch.equal(one.labels.target, other.labels.target)
