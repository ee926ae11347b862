"""Whether structure supports pairs: right ones, shuffled ones, hubs, and too few."""

from __future__ import annotations

import numpy as np
import pytest

from clusterea.graph.seed_check import FEWEST, agreement
from clusterea.types import IntArray, KnowledgeGraph, Pair
from small_graphs import random_pair

SIZE = 200


def planted(seed: int = 0, *, size: int = SIZE, kept: float = 0.7) -> Pair[KnowledgeGraph]:
    """Two graphs of the same entities; each has most triples of a third graph."""
    draw = np.random.default_rng(seed)
    whole = random_pair(seed, entities=size, triples=4 * size).source
    both = [whole.triples[draw.random(whole.num_triples) < kept] for _ in range(2)]
    return Pair(*both).map(lambda triples: KnowledgeGraph(triples, size, whole.num_relations))


def pairs(size: int = SIZE, *, right: float = 1.0, seed: int = 0) -> IntArray:
    """(size, 2): a share of the pairs is right, the others are shuffled."""
    draw = np.random.default_rng(seed)
    found = np.column_stack([np.arange(size)] * 2)
    wrong = draw.permutation(size)[int(right * size) :]
    found[wrong, 1] = draw.permutation(found[wrong, 1])
    return found


def with_hub(graphs: Pair[KnowledgeGraph]) -> Pair[KnowledgeGraph]:
    """With an entity more, the last, that is the neighbor of all others."""

    def side(graph: KnowledgeGraph) -> KnowledgeGraph:
        size = graph.num_entities
        spokes = [(entity, 0, size) for entity in range(size)]
        return KnowledgeGraph(
            np.concatenate([graph.triples, spokes]), size + 1, graph.num_relations
        )

    return graphs.map(side)


@pytest.mark.parametrize("seed", range(3))
def test_right_pairs_have_a_high_advantage(seed: int) -> None:
    found = agreement(planted(seed), pairs(seed=seed))
    assert found.advantage > 0.8
    assert found.checked > 0.9 * SIZE
    assert not found.is_mostly_wrong


@pytest.mark.parametrize("seed", range(3))
def test_shuffled_pairs_have_none(seed: int) -> None:
    found = agreement(planted(seed), pairs(right=0, seed=seed))
    assert abs(found.advantage) < 0.1
    assert found.checked > 0.9 * SIZE
    assert found.is_mostly_wrong


def test_the_advantage_rises_with_the_share_of_right_pairs() -> None:
    found = [agreement(planted(), pairs(right=share)) for share in (0, 0.5, 0.75, 1)]
    advantages = [each.advantage for each in found]
    assert advantages == sorted(advantages)
    assert [each.is_mostly_wrong for each in found] == [True, False, False, False]


@pytest.mark.parametrize("right", [0, 0.5, 1])
def test_a_hub_changes_nothing(right: float) -> None:
    hub = [[SIZE, SIZE]]
    before = agreement(planted(), pairs(right=right))
    after = agreement(with_hub(planted()), np.concatenate([pairs(right=right), hub]))
    assert after.advantage == pytest.approx(before.advantage, abs=0.1)
    assert after.is_mostly_wrong == before.is_mostly_wrong


def test_a_star_supports_nothing() -> None:
    """Every two pairs have the hub in common, be they right or wrong."""
    nothing = KnowledgeGraph(np.empty((0, 3), dtype=np.int64), SIZE, 1)
    stars = with_hub(Pair(nothing, nothing))
    found = agreement(stars, np.concatenate([pairs(), [[SIZE, SIZE]]]))
    assert abs(found.advantage) < 0.1


def test_too_few_pairs_give_no_verdict() -> None:
    graphs = random_pair(0, entities=FEWEST - 1, triples=4 * FEWEST)
    few = agreement(graphs, pairs(FEWEST - 1))
    assert 0 < few.checked < FEWEST
    assert not few.is_mostly_wrong
    more = random_pair(0, entities=2 * FEWEST, triples=8 * FEWEST)
    assert agreement(more, pairs(2 * FEWEST, right=0)).is_mostly_wrong


def test_pairs_that_are_no_neighbors_of_others_are_not_checked() -> None:
    nothing = KnowledgeGraph(np.empty((0, 3), dtype=np.int64), SIZE, 1)
    found = agreement(Pair(nothing, planted().target), pairs())
    assert (found.checked, found.advantage) == (0, 0.0)
    assert not found.is_mostly_wrong
    assert agreement(planted(), pairs()[:0]).checked == 0


def test_loops_directions_and_parallel_triples_do_not_count() -> None:
    graphs = planted()

    def changed(graph: KnowledgeGraph) -> KnowledgeGraph:
        loops = np.array([(entity, 0, entity) for entity in range(SIZE)])
        both_ways = [graph.triples, graph.triples[::3, ::-1], loops]
        triples = np.unique(np.concatenate(both_ways), axis=0)
        return KnowledgeGraph(triples, SIZE, graph.num_relations)

    assert agreement(graphs.map(changed), pairs(right=0.5)) == agreement(graphs, pairs(right=0.5))


def test_the_order_of_pairs_hardly_matters() -> None:
    mixed = np.random.default_rng(1).permutation(pairs(right=0.5))
    one, other = agreement(planted(), pairs(right=0.5)), agreement(planted(), mixed)
    assert one.checked == other.checked
    assert one.advantage == pytest.approx(other.advantage, abs=0.1)
