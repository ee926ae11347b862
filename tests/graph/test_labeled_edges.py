"""`LabeledEdges` against the triples themselves, looked through one by one."""

from __future__ import annotations

import torch
from hypothesis import given

from clusterea.engines.packing import pack
from clusterea.graph.labeled_edges import LabeledEdges
from clusterea.types import KnowledgeGraph
from small_graphs import graph, knowledge_graphs, labeled_edges, random_pair

Edge = tuple[int, int, int]  # entity, kind, neighbor
CPU = torch.device("cpu")


def edges_of(found: LabeledEdges) -> list[Edge]:
    columns = found.entities(), found.kinds(), found.neighbors()
    return list(zip(*(column.tolist() for column in columns), strict=True))


@given(knowledge_graphs())
def test_every_triple_from_both_ends_and_no_loop(some: KnowledgeGraph) -> None:
    found = LabeledEdges.of(some, CPU)
    edges = edges_of(found)
    assert set(edges) == labeled_edges(some)
    assert len(edges) == len(set(edges)) == len(found)
    siblings = [
        sum(kind == other[1] and neighbor == other[2] for other in edges)
        for _, kind, neighbor in edges
    ]
    assert found.siblings().tolist() == siblings
    assert edges_of(LabeledEdges.of(some, CPU, siblings=False)) == edges


def test_more_kinds_than_small_integers_hold() -> None:
    triples = [(0, 0, 1), (1, 19_999, 2), (2, 16_383, 0), (2, 16_384, 0), (1, 19_999, 0)]
    some = graph(triples, 3, 20_000)
    assert set(edges_of(LabeledEdges.of(some, CPU))) == labeled_edges(some)


@given(knowledge_graphs())
def test_look_up(some: KnowledgeGraph) -> None:
    found = LabeledEdges.of(some, CPU)
    edges = edges_of(found)
    size = some.num_entities
    asked = torch.arange(size).flip(0)
    places, at = found.of_entities(asked)
    seen = [(int(asked[place]), edges[edge]) for place, edge in zip(places, at, strict=True)]
    assert sorted(seen) == sorted((edge[0], edge) for edge in edges)
    pairs = torch.cartesian_prod(torch.arange(size), torch.arange(size))
    places, at = found.between(pairs[:, 0], pairs[:, 1])
    joined = {(edges[edge][0], edges[edge][2]) == tuple(pairs[place].tolist())
              for place, edge in zip(places, at, strict=True)}  # fmt: skip
    assert joined <= {True}
    assert sorted(at.tolist()) == list(range(len(edges)))


def test_a_triple_that_is_there_twice_counts_once() -> None:
    once, twice = graph([(0, 0, 1), (2, 0, 1)], 3, 1), graph([(0, 0, 1), (2, 0, 1)] * 2, 3, 1)
    assert edges_of(LabeledEdges.of(twice, CPU)) == edges_of(LabeledEdges.of(once, CPU))
    assert LabeledEdges.of(twice, CPU).siblings().tolist() == [2, 1, 1, 2]


def test_distinct_neighbors() -> None:
    found = LabeledEdges.of(graph([(0, 0, 1), (0, 1, 1), (1, 0, 2), (2, 0, 3)], 5, 2), CPU)
    assert found.num_neighbors().tolist() == [1, 2, 2, 1, 0]


def test_an_edge_takes_10_bytes() -> None:
    found = LabeledEdges.of(random_pair(0, entities=900, triples=5000).source, CPU)
    held = sum(buffer.nbytes for buffer in pack(found)[1])
    assert held == 10 * len(found) + 8 * 901


def test_without_triples() -> None:
    found = LabeledEdges.of(graph([], 3, 1), CPU)
    assert len(found) == 0
    assert found.between(torch.tensor([0]), torch.tensor([1]))[0].tolist() == []
