"""Why an entity has no link, on a similarity small enough to read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from clusterea.report.unlinked import Candidate, candidates_of
from clusterea.types import Alignment, AlignmentTask, Pair, Similarity
from small_graphs import graph

# Source 0 has candidates 0 to 4; a seed joins 1 and 0; links are 2 = 1 and 0 = 4.
SIMILARITY = Similarity(
    torch.tensor([0, 5, 5, 6, 6]),
    torch.tensor([0, 1, 2, 3, 4, 1]),
    torch.tensor([0.5, 0.25, 0.75, 0.125, 1.0, 2.0]),
    Pair(4, 6),
)
GRAPHS = Pair(graph([], 4, 1), graph([], 6, 1))
TASK = AlignmentTask(GRAPHS, np.array([[1, 0]]), Pair(np.arange(4), np.arange(6)))
FOUND = Alignment(
    torch.tensor([[2, 1], [0, 4]]),
    torch.tensor([0.875, 0.375]),
    Pair(torch.tensor([3]), torch.tensor([2, 3, 5])),
)
GIVEN = FOUND.at_least(0.5)


@pytest.mark.parametrize("links", [[], [[0, 2]], [[0, 2], [3, 3]]])
def test_each_reason(links: list[list[int]]) -> None:
    """Only a pair that the matching method chose can have been too unsure."""
    chosen = replace(
        FOUND, links=torch.tensor(links).reshape(-1, 2), confidence=torch.ones(len(links))
    )
    candidates = candidates_of("source", 0, SIMILARITY, TASK, FOUND, GIVEN, lambda: chosen, limit=9)
    assert candidates == (
        Candidate(4, 1.0, "left_out", 0, 0.375),
        Candidate(2, 0.75, "unsure" if links else "not_chosen"),
        Candidate(0, 0.5, "seed", 1),
        Candidate(1, 0.25, "linked", 2, 0.875),
        Candidate(3, 0.125, "not_chosen"),
    )


def test_without_a_cut_nothing_is_below_it() -> None:
    fitted = replace(FOUND, examples=130)
    candidates = candidates_of("source", 0, SIMILARITY, TASK, fitted, GIVEN, limit=9)
    assert [each.reason for each in candidates if each.entity in {2, 3}] == ["not_chosen"] * 2


def test_a_left_out_link_of_somebody_else() -> None:
    none = candidates_of("source", 0, SIMILARITY, TASK, FOUND, FOUND.top(0), limit=9)
    assert Candidate(1, 0.25, "left_out", 2, 0.875) in none
    assert Candidate(4, 1.0, "left_out", 0, 0.375) in none


def test_from_the_other_side() -> None:
    turned = TASK.seeds[:, ::-1].copy()
    task = AlignmentTask(GRAPHS.swap(), turned, TASK.tie_keys.swap())
    found, given = FOUND.swap(), GIVEN.swap()
    there = candidates_of("source", 0, SIMILARITY, TASK, FOUND, GIVEN, limit=9)
    back = candidates_of("target", 0, SIMILARITY.swap(), task, found, given, limit=9)
    assert back == there


def test_the_best_few_or_none() -> None:
    few = candidates_of("source", 0, SIMILARITY, TASK, FOUND, GIVEN, limit=2)
    assert [each.entity for each in few] == [4, 2]
    assert candidates_of("source", 3, SIMILARITY, TASK, FOUND, GIVEN, limit=2) == ()
    assert candidates_of("target", 5, SIMILARITY, TASK, FOUND, GIVEN, limit=2) == ()
