from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clusterea.report import EvidenceIndex, Step, Support, evidence
from clusterea.types import Alignment, AlignmentTask, IntArray, KnowledgeGraph, Names, Pair

EMPTY = torch.empty(0, dtype=torch.int64)


def alignment_of(links: list[tuple[int, int]], confidence: list[float]) -> Alignment:
    return Alignment(
        torch.tensor(links, dtype=torch.int64).reshape(-1, 2),
        torch.tensor(confidence, dtype=torch.float64),
        Pair(EMPTY, EMPTY),
    )


@pytest.fixture
def task() -> AlignmentTask:
    """Entity 0 of both sides is the one asked for; 1 is a seed, 2 and 3 are links."""
    return AlignmentTask(
        Pair(
            KnowledgeGraph(np.array([(0, 0, 1), (2, 1, 0), (0, 0, 2), (0, 1, 3), (3, 0, 4)]), 5, 2),
            KnowledgeGraph(np.array([(0, 2, 1), (0, 1, 2), (3, 0, 0), (0, 0, 0)]), 5, 3),
        ),
        np.array([(1, 1)]),
    )


def test_neighbors_that_are_matched_come_with_their_relations_and_directions(
    task: AlignmentTask,
) -> None:
    found = evidence(task, alignment_of([(2, 2), (3, 3)], [0.25, 0.75]), 0, 0)
    assert found == [
        Support(Pair(1, 1), Pair((Step(0, True),), (Step(2, True),)), True, None),
        Support(Pair(3, 3), Pair((Step(1, True),), (Step(0, False),)), False, 0.75),
        Support(Pair(2, 2), Pair((Step(0, True), Step(1, False)), (Step(1, True),)), False, 0.25),
    ]


def test_a_limit_keeps_the_strongest_and_counts_the_rest(task: AlignmentTask) -> None:
    index = EvidenceIndex(task, alignment_of([(2, 2), (3, 3)], [0.25, 0.75]))
    found = index.evidence(0, 0, limit=2)
    assert [each.neighbors for each in found.supports] == [Pair(1, 1), Pair(3, 3)]
    assert found.total == 3
    assert found.num_neighbors == Pair(3, 3)


def test_a_match_does_not_support_itself_through_a_loop() -> None:
    loop = KnowledgeGraph(np.array([(0, 0, 0)]), 1, 1)
    task = AlignmentTask(Pair(loop, loop), np.empty((0, 2), dtype=np.int64))
    assert evidence(task, alignment_of([(0, 0)], [1.0]), 0, 0) == []


def test_a_link_that_repeats_a_seed_counts_once(task: AlignmentTask) -> None:
    found = evidence(task, alignment_of([(1, 1)], [0.5]), 0, 0)
    assert [(each.neighbors, each.by_seed) for each in found] == [(Pair(1, 1), True)]


@pytest.mark.parametrize(("source", "target"), [(-1, 0), (5, 0), (0, -1), (0, 5)])
def test_an_entity_that_is_not_there_is_refused(
    task: AlignmentTask, source: int, target: int
) -> None:
    with pytest.raises(ValueError, match=r"_entity must lie in \[0, 5\)\. Got"):
        evidence(task, alignment_of([], []), source, target)


def test_names_take_the_place_of_numbers() -> None:
    support = Support(Pair(0, 1), Pair((Step(1, True),), ()), False, 0.5)
    named = Support.named(
        support,
        Pair(Names(["a", "b"]), Names(["c", "d"])),
        Pair(Names(["r", "s"]), Names(["t"])),
    )
    assert named == Support(Pair("a", "d"), Pair((Step("s", True),), ()), False, 0.5)


def graphs(entities: int) -> st.SearchStrategy[KnowledgeGraph]:
    entity = st.integers(0, entities - 1)
    triples = st.lists(st.tuples(entity, st.integers(0, 2), entity), max_size=25)
    return triples.map(
        lambda some: KnowledgeGraph(np.array(some, dtype=np.int64).reshape(-1, 3), entities, 3)
    )


@st.composite
def runs(draw: st.DrawFn) -> tuple[AlignmentTask, Alignment]:
    """Links need not be one-to-one, and may contradict or repeat a seed."""
    sizes = Pair(draw(st.integers(1, 6)), draw(st.integers(1, 6)))
    count = draw(st.integers(0, min(sizes)))
    seeds = np.column_stack(
        [draw(st.permutations(range(size)).map(lambda ids: ids[:count])) for size in sizes]
    )
    cells = st.tuples(st.integers(0, sizes.source - 1), st.integers(0, sizes.target - 1))
    links = draw(st.lists(cells, unique=True, max_size=10))
    confidence = draw(
        st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=len(links), max_size=len(links))
    )
    task = AlignmentTask(sizes.map(lambda size: draw(graphs(size))), seeds)
    return task, alignment_of(links, confidence)


def slow_steps(triples: IntArray, entity: int) -> dict[int, set[Step[int]]]:
    steps: dict[int, set[Step[int]]] = {}
    for head, relation, tail in triples.tolist():
        if head == entity != tail:
            steps.setdefault(tail, set()).add(Step(relation, True))
        if tail == entity != head:
            steps.setdefault(head, set()).add(Step(relation, False))
    return steps


@given(runs())
def test_it_agrees_with_looking_at_every_pair(run: tuple[AlignmentTask, Alignment]) -> None:
    task, alignment = run
    seeds = set(map(tuple, task.seeds.tolist()))
    links = dict(
        zip(map(tuple, alignment.links.tolist()), alignment.confidence.tolist(), strict=True)
    )
    index = EvidenceIndex(task, alignment)
    for source in range(task.graphs.source.num_entities):
        for target in range(task.graphs.target.num_entities):
            alone = EvidenceIndex(task, alignment, np.array([[source, target]]))
            assert alone.evidence(source, target) == index.evidence(source, target)
            near = Pair(
                slow_steps(task.graphs.source.triples, source),
                slow_steps(task.graphs.target.triples, target),
            )
            wanted = {
                (a, b): (steps_a, steps_b, (a, b) in seeds, links.get((a, b)))
                for a, steps_a in near.source.items()
                for b, steps_b in near.target.items()
                if (a, b) in seeds or (a, b) in links
            }
            found = index.evidence(source, target)
            assert found.total == len(found.supports) == len(wanted)
            assert found.num_neighbors == near.map(len)
            for each in found.supports:
                steps_a, steps_b, by_seed, confidence = wanted[
                    each.neighbors.source, each.neighbors.target
                ]
                assert set(each.relations.source) == steps_a
                assert set(each.relations.target) == steps_b
                assert len(each.relations.source) == len(steps_a)
                assert each.by_seed == by_seed
                assert each.confidence == (None if by_seed else confidence)
            order = [(not each.by_seed, -(each.confidence or 0)) for each in found.supports]
            assert order == sorted(order)


@given(runs())
def test_the_other_direction_has_the_same_evidence(run: tuple[AlignmentTask, Alignment]) -> None:
    task, alignment = run
    one, other = EvidenceIndex(task, alignment), EvidenceIndex(task.swap(), alignment.swap())
    there = one.evidence(0, 0).supports
    back = other.evidence(0, 0).supports
    assert {(each.neighbors, each.relations) for each in there} == {
        (each.neighbors.swap(), each.relations.swap()) for each in back
    }
