"""Graphs whose structure tells nothing, and others that must not be taken for such."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from clusterea.graph.common_structure import (
    no_common_edges,
    num_twins,
    num_unreachable,
    structure_problems,
)
from clusterea.types import AlignmentTask, KnowledgeGraph, Pair
from small_graphs import Triple, graph, knowledge_graphs, random_pair

COUNT = 60
CHAIN = [(i, 0, i + 1) for i in range(COUNT - 1)]
STAR = [(0, 0, i) for i in range(1, COUNT)]


def task(source: KnowledgeGraph, target: KnowledgeGraph, seeds: int) -> AlignmentTask:
    """Entities of the same number are the same; the first are seeds."""
    graphs = Pair(source, target)
    links = np.stack([np.arange(seeds)] * 2, axis=1)
    return AlignmentTask(graphs, links, graphs.map(lambda side: np.arange(side.num_entities)))


def drawn_triples() -> list[Triple]:
    drawn = random_pair(0, entities=COUNT, relations=3, triples=240).source
    return [tuple(row) for row in drawn.triples.tolist()]


def same(triples: list[Triple], seeds: int, entities: int = COUNT) -> AlignmentTask:
    one = graph(triples, entities, 3)
    return task(one, one, seeds)


@pytest.mark.parametrize("seed", range(20))
def test_no_common_structure(seed: int) -> None:
    one, other = random_pair(seed, entities=COUNT, triples=240)
    assert "no neighbors in common" in no_common_edges(task(one, other, 30))
    assert no_common_edges(task(one, one, 30)) == ""


def test_half_of_the_edges_are_enough() -> None:
    source, other = random_pair(0, entities=COUNT, triples=240)
    mixed = np.concatenate([source.triples[:120], other.triples[:120]])
    assert no_common_edges(task(source, KnowledgeGraph(mixed, COUNT, 4), 30)) == ""


def test_few_edges_between_seeds_tell_nothing() -> None:
    one, other = random_pair(0, entities=COUNT, triples=240)
    assert no_common_edges(task(one, other, 5)) == ""
    assert no_common_edges(same([], 30)) == ""
    assert no_common_edges(same(CHAIN, 0)) == ""


def test_what_can_be_learned_from_has_no_problem() -> None:
    assert structure_problems(same(CHAIN, 30)) == []
    assert structure_problems(same(drawn_triples(), 30)) == []


def test_a_star_has_twins() -> None:
    (problem,) = structure_problems(same(STAR, 30))
    assert problem.startswith("59 source and 59 target entities have exactly the neighbors of")


@pytest.mark.parametrize(
    ("triples", "twins"),
    [
        ([], 4),
        ([(0, 0, 1), (0, 0, 2)], 2),  # 3 is in no triple, alone in that
        ([(0, 0, 1), (0, 1, 2)], 0),  # by other relations
        ([(0, 0, 1), (2, 0, 0)], 0),  # the other way round
        ([(0, 0, 2), (0, 1, 3), (1, 0, 2), (1, 1, 3)], 2),
        ([(0, 0, 2), (0, 1, 3), (1, 0, 3), (1, 1, 2)], 0),  # the same, otherwise paired
        ([(0, 0, 0), (1, 0, 1), (2, 1, 2)], 2),
    ],
)
def test_twins(triples: list[Triple], twins: int) -> None:
    assert num_twins(graph(triples, 4, 2)) == twins


@given(knowledge_graphs())
def test_twins_by_hand(of: KnowledgeGraph) -> None:
    seen: list[set[tuple[int, int, int]]] = [set() for _ in range(of.num_entities)]
    for head, relation, tail in of.triples.tolist():
        loop = head == tail
        seen[head].add((0, relation, -1 if loop else tail))
        seen[tail].add((1, relation, -1 if loop else head))
    assert num_twins(of) == sum(seen.count(each) > 1 for each in seen)


def test_nothing_left_to_match() -> None:
    nothing_left = ["Every entity of a graph is in a seed, so there is nothing left to match."]
    assert structure_problems(same(CHAIN, COUNT)) == nothing_left
    assert structure_problems(same([(0, 0, 0)], 1, entities=1)) == nothing_left


def test_halves_of_which_one_has_no_seed() -> None:
    halves = [each for each in CHAIN if each[0] != 39]
    assert num_unreachable(graph(halves, COUNT, 1), np.arange(30)) == 20
    assert num_unreachable(graph(CHAIN, COUNT, 1), np.array([59])) == 0
    (problem,) = structure_problems(same(halves, 30))
    assert problem.startswith("20 source and 20 target entities have no path to a seed")


def test_a_few_without_a_path_are_not_worth_a_word() -> None:
    assert structure_problems(same([each for each in CHAIN if each[0] != 54], 30)) == []  # 5
    assert structure_problems(same([each for each in CHAIN if each[0] != 52], 30))  # 7


def test_loops_join_nobody() -> None:
    loops = [(i, 0, i) for i in range(COUNT)]
    twins, problem = structure_problems(same(loops, 20))
    assert twins.startswith("60 source and 60 target entities have exactly the neighbors of")
    assert problem.startswith("40 source and 40 target entities have no path to a seed")


def with_structural(triples: list[Triple], entities: int, structural: range) -> AlignmentTask:
    """Entities of the same number are the same; the first 30 are seeds."""
    plain = same(triples, 30, entities)
    numbers = np.array(structural)
    return replace(plain, structural=Pair(numbers, numbers))


def test_structural_entities_are_no_twins() -> None:
    """An entity of the chain has 200 blank nodes that nothing tells apart."""
    blank = range(COUNT, COUNT + 200)
    leaves = [(7, 1, number) for number in blank]
    assert num_twins(graph(CHAIN + leaves, blank.stop, 3)) == 200
    assert num_twins(graph(CHAIN + leaves, blank.stop, 3), np.array(blank)) == 0
    assert structure_problems(with_structural(CHAIN + leaves, blank.stop, blank)) == []


def test_twins_among_many_structural_entities_are_told() -> None:
    """Each of 200 blank nodes has other neighbors: a share of all would hide a star's twins."""
    blank = range(COUNT, COUNT + 200)
    chain = [(number, 1, number + 1) for number in range(COUNT, blank.stop - 1)]
    (problem,) = structure_problems(with_structural([*STAR, (0, 2, COUNT), *chain], 260, blank))
    assert problem.startswith("59 source and 59 target entities have exactly the neighbors of")


def test_structural_entities_need_no_path_to_a_seed() -> None:
    blank = range(COUNT, COUNT + 20)
    lone = [(number, 0, number + 1) for number in blank[:-1]]
    assert num_unreachable(graph(CHAIN + lone, blank.stop, 1), np.arange(30)) == 20
    assert structure_problems(with_structural(CHAIN + lone, blank.stop, blank)) == []


def test_entities_without_a_path_are_a_share_of_those_that_may_be_linked() -> None:
    """7 of 60 are worth a word, however many blank nodes there are."""
    cut = [each for each in CHAIN if each[0] != 52]
    blank = range(COUNT, COUNT + 100)
    joined = [(number - 1 if number > COUNT else 3, 1, number) for number in blank]
    (problem,) = structure_problems(with_structural(cut + joined, blank.stop, blank))
    assert problem.startswith("7 source and 7 target entities have no path to a seed")
