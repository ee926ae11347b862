"""`union` against a slow reading of the triples."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from numpy.typing import NDArray

from clusterea.graph.union import UnionGraph, union
from clusterea.types import KnowledgeGraph, Pair
from small_graphs import HAND, graph, heard, pairs, random_pair, union_triples


def sets_of(built: UnionGraph) -> list[list[int]]:
    bounds = built.set_offsets.tolist()
    relations = built.set_relations.tolist()
    return [relations[start:stop] for start, stop in pairwise(bounds)]


def read(built: UnionGraph) -> list[dict[int, set[int]]]:
    """Whom each node hears from, and under which relations."""
    sets, result = sets_of(built), []
    for node in range(built.num_nodes):
        edges = range(int(built.offsets[node]), int(built.offsets[node + 1]))
        senders = [int(built.neighbors[edge]) for edge in edges]
        assert senders == sorted(set(senders))  # rising, so parallel triples are one edge
        result.append(
            {
                sender: set(sets[int(built.relation_sets[edge])])
                for sender, edge in zip(senders, edges, strict=True)
            }
        )
    return result


def dense_weights(graphs: Pair[KnowledgeGraph]) -> NDArray[np.float64]:
    """D^-½ (A + I) D^-½ from the definition; row: receiver, column: sender."""
    nodes = sum(side.num_entities for side in graphs)
    triples = list(union_triples(graphs))
    adjacency = np.zeros((nodes, nodes))
    for head, relation, tail in triples:
        if head == tail:
            continue
        same = [(h, t) for h, r, t in triples if r == relation]
        fun = len({h for h, _ in same}) / len(same)
        ifun = len({t for _, t in same}) / len(same)
        adjacency[tail, head] += max(ifun, 0.3)
        adjacency[head, tail] += max(fun, 0.3)
    adjacency += np.eye(nodes)
    scale = np.diag(adjacency.sum(1) ** -0.5)
    result: NDArray[np.float64] = scale @ adjacency @ scale
    return result


def check(graphs: Pair[KnowledgeGraph]) -> None:
    built = union(graphs)
    wanted = heard(graphs)
    assert read(built) == wanted
    assert built.num_edges == sum(len(senders) for senders in wanted)
    assert tuple(built.num_entities) == tuple(side.num_entities for side in graphs)
    assert built.num_relations == 2 * sum(side.num_relations for side in graphs)

    matrix = np.diag(built.self_weights.numpy()).astype(np.float64)
    for node in range(built.num_nodes):
        for edge in range(int(built.offsets[node]), int(built.offsets[node + 1])):
            matrix[node, built.neighbors[edge]] += float(built.weights[edge])
    np.testing.assert_allclose(matrix, dense_weights(graphs), rtol=1e-6)

    for node, senders in enumerate(wanted):
        start, stop = built.incident_offsets[node : node + 2].tolist()
        incident = built.incident_relations[start:stop].tolist()
        assert len(set(incident)) == len(incident)
        assert set(incident) == set().union(*senders.values())


@given(pairs())
def test_any_pair(graphs: Pair[KnowledgeGraph]) -> None:
    check(graphs)


@pytest.mark.parametrize("seed", range(3))
def test_larger_pairs(seed: int) -> None:
    check(random_pair(seed))


@pytest.mark.parametrize("relations", [8_190, 8_191, 8_192, 20_000])
def test_more_relations_than_small_integers_hold(relations: int) -> None:
    """With 8,191 of a side there are 32,764 names, and sets of several relations go beyond 2^15."""
    rng = np.random.default_rng(relations)

    def side(entities: int) -> KnowledgeGraph:
        ends = rng.integers(entities, size=(2, 40))
        chosen = rng.choice(relations, 40)
        chosen[:2] = 0, relations - 1
        return graph(list(zip(ends[0], chosen, ends[1], strict=True)), entities, relations)

    check(Pair(side(6), side(5)))


class TestByHand:
    def test_both_directions_and_both_sides(self) -> None:
        hears = read(union(HAND))
        # R = 5. Entity 1 hears 0 under 0 and 1, and under the inverse of 0 for the way back.
        assert hears[1][0] == {0, 1, 0 + 5}
        assert hears[0][1] == {0, 0 + 5, 1 + 5}
        assert hears[2][2] == {2, 2 + 5}  # a loop hears itself both ways
        assert hears[5] == {}  # in no triple
        # Target entity 0 is node 6, target relation 0 is 3.
        assert hears[7][6] == {3}
        assert hears[6][8] == {3, 4}
        assert all(sender >= 6 for node in range(6, 10) for sender in hears[node])

    def test_equal_sets_are_one_set(self) -> None:
        built = union(HAND)
        sets = sets_of(built)
        assert sets[: built.num_relations] == [[r] for r in range(built.num_relations)]
        assert len({frozenset(some) for some in sets}) == len(sets) == built.num_sets
        several = {frozenset(some) for node in heard(HAND) for some in node.values()}
        several = {some for some in several if len(some) > 1}
        assert {frozenset(some) for some in sets[built.num_relations :]} == several

    def test_repr_tells_sizes(self) -> None:
        text = repr(union(HAND))
        assert "10 nodes" in text
        assert "10 relations with inverses" in text


def test_no_triples_at_all() -> None:
    built = union(Pair(graph([], 2, 0), graph([], 3, 0)))
    assert (built.num_nodes, built.num_edges, built.num_sets) == (5, 0, 0)
    assert built.self_weights.tolist() == [1.0] * 5


def test_bytes_and_moving() -> None:
    built = union(HAND)
    tensors = [
        built.offsets,
        built.neighbors,
        built.relation_sets,
        built.weights,
        built.self_weights,
        built.set_offsets,
        built.set_relations,
        built.incident_offsets,
        built.incident_relations,
    ]
    assert built.num_bytes() == sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    moved = built.to(torch.device("cpu"))
    assert moved.device.type == "cpu"
    assert torch.equal(moved.neighbors, built.neighbors)
