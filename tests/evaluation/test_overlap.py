"""Overlap and the release's macro variant against loops over links."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clusterea.evaluation.overlap import Overlap, macro_overlap, overlap
from clusterea.types import AlignmentTask, Benchmark, KnowledgeGraph, Names, Pair, Partition

Link = tuple[int, int]


def judged(
    labels: Pair[list[int]], num_batches: int, seeds: list[Link], test: list[Link]
) -> Overlap:
    """The overlap of these links, among graphs without triples."""
    graphs = labels.map(lambda side: KnowledgeGraph(np.empty((0, 3), int), len(side), 1))
    names = labels.map(lambda side: Names([str(i) for i in range(len(side))]))
    one = Names("r")
    task = AlignmentTask(graphs, np.array(seeds, dtype=np.int64).reshape(-1, 2))
    links = np.array(test, dtype=np.int64).reshape(-1, 2)
    partition = Partition(
        labels.map(lambda side: torch.tensor(side, dtype=torch.int64)), num_batches
    )
    return overlap(partition, Benchmark(task, links, names, Pair(one, one)))


def slow_macro(labels: list[Link], num_batches: int) -> float:
    """Each part's largest overlap with any part of the other side, as the release counts it."""
    ways = []
    for near, far in ((0, 1), (1, 0)):
        shares = []
        for part in range(num_batches):
            partners = [link[far] for link in labels if link[near] == part]
            most = max(partners.count(other) for other in range(num_batches))
            shares.append(most / (len(partners) + 0.01))
        ways.append(sum(shares) / num_batches)
    return sum(ways) / 2


@st.composite
def situations(draw: st.DrawFn) -> tuple[Pair[list[int]], int, list[Link], list[Link]]:
    parts = draw(st.integers(1, 4))
    label = st.integers(0, parts - 1)
    labels = Pair(*(draw(st.lists(label, min_size=1, max_size=9)) for _ in range(2)))
    count = min(len(labels.source), len(labels.target))
    ends = (draw(st.permutations(range(len(side)))) for side in labels)
    links = [(a, b) for a, b in zip(*ends, strict=False)]
    cut = draw(st.integers(0, count))
    return labels, parts, links[:cut], links[cut : draw(st.integers(cut, count))]


@given(situations())
def test_any_partition(drawn: tuple[Pair[list[int]], int, list[Link], list[Link]]) -> None:
    labels, parts, seeds, test = drawn

    def share(links: list[Link]) -> float:
        kept = sum(labels.source[one] == labels.target[other] for one, other in links)
        return kept / len(links) if links else 0.0

    measured = judged(labels, parts, seeds, test)
    assert measured.seeds == pytest.approx(share(seeds))
    assert measured.test == pytest.approx(share(test))
    assert measured.all == pytest.approx(share(seeds + test))
    ends = [(labels.source[one], labels.target[other]) for one, other in seeds + test]
    assert measured.macro == pytest.approx(slow_macro(ends, parts))
    assert macro_overlap(torch.tensor(ends, dtype=torch.int64).reshape(-1, 2), parts) == (
        pytest.approx(measured.macro)
    )


def test_by_hand() -> None:
    # Links in order; mini-batches of their ends: 0-0, 0-0 | 0-1, 1-1, 1-0, 1-0.
    labels = Pair([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 0, 0])
    links = [(i, i) for i in range(6)]
    measured = judged(labels, 2, links[:2], links[2:])
    assert measured.seeds == 1
    assert measured.test == 1 / 4
    assert measured.all == 1 / 2
    # Source: part 0 has 2 of 3 with part 0; part 1 has 2 of 3 with part 0 too. Target: 2 of 4, 1
    # of 2. So the macro variant says more than half, with both parts on the same partner.
    source, target = (2 / 3.01 + 2 / 3.01) / 2, (2 / 4.01 + 1 / 2.01) / 2
    assert measured.macro == pytest.approx((source + target) / 2)


def test_one_mini_batch_keeps_everything() -> None:
    measured = judged(Pair([0] * 400, [0] * 400), 1, [(0, 0)], [(i, i) for i in range(1, 400)])
    assert (measured.seeds, measured.test, measured.all) == (1, 1, 1)
    assert measured.macro == pytest.approx(400 / 400.01)


def test_no_links_are_no_error() -> None:
    assert judged(Pair([0, 1], [1]), 2, [], []) == Overlap(0.0, 0.0, 0.0, macro=0.0)
    seeds_only = judged(Pair([0, 1], [1]), 2, [(1, 0)], [])
    assert (seeds_only.seeds, seeds_only.test, seeds_only.all) == (1, 0, 1)
    assert seeds_only.macro == pytest.approx(1 / 1.01 / 2)


def test_sides_may_be_swapped() -> None:
    links = [(0, 2), (1, 0), (3, 1)]
    labels = Pair([0, 1, 1, 2], [1, 2, 0])
    turned = [(b, a) for a, b in links]
    there, back = (
        judged(labels, 3, links[:1], links[1:]),
        judged(labels.swap(), 3, turned[:1], turned[1:]),
    )
    assert (there.seeds, there.test, there.all) == (back.seeds, back.test, back.all)
    assert there.macro == pytest.approx(back.macro)
