"""Small pairs of graphs, by hand and by hypothesis, and a slow reading of what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import strategies as st

from clusterea.types import KnowledgeGraph, Pair

Triple = tuple[int, int, int]


def graph(triples: Sequence[Triple], num_entities: int, num_relations: int) -> KnowledgeGraph:
    return KnowledgeGraph(
        np.array(triples, dtype=np.int64).reshape(-1, 3), num_entities, num_relations
    )


#: Parallel triples, triples there and back, a loop, a hub, and source entity 5 in no triple.
HAND = Pair(
    graph(
        [
            (0, 0, 1),
            (0, 1, 1),
            (1, 0, 0),
            (1, 1, 2),
            (2, 2, 2),
            (3, 0, 0),
            (3, 0, 1),
            (3, 2, 2),
            (3, 1, 4),
            (4, 1, 3),
        ],
        6,
        3,
    ),
    graph([(0, 0, 1), (1, 0, 2), (2, 1, 0), (2, 0, 0), (3, 1, 0), (3, 1, 1)], 4, 2),
)


def random_pair(
    seed: int, *, entities: int = 30, relations: int = 4, triples: int = 120
) -> Pair[KnowledgeGraph]:
    """Two unrelated graphs of distinct triples; some entities may be in none."""
    rng = np.random.default_rng(seed)

    def side() -> KnowledgeGraph:
        shape = entities, relations, entities
        cells = rng.choice(entities * relations * entities, triples, replace=False)
        return KnowledgeGraph(np.stack(np.unravel_index(cells, shape), 1), entities, relations)

    return Pair(side(), side())


def labeled_edges(of: KnowledgeGraph) -> set[Triple]:
    """Entity, kind, neighbor: every triple from both its ends, without loops."""
    found = set()
    for head, relation, tail in of.triples.tolist():
        if head != tail:
            found |= {(head, relation, tail), (tail, relation + of.num_relations, head)}
    return found


@st.composite
def knowledge_graphs(draw: st.DrawFn) -> KnowledgeGraph:
    entities, relations = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    entity, relation = st.integers(0, entities - 1), st.integers(0, relations - 1)
    triples = draw(st.lists(st.tuples(entity, relation, entity), max_size=14, unique=True))
    return graph(triples, entities, relations)


def pairs() -> st.SearchStrategy[Pair[KnowledgeGraph]]:
    return st.builds(Pair, knowledge_graphs(), knowledge_graphs())


def union_triples(graphs: Pair[KnowledgeGraph]) -> Iterator[Triple]:
    """All triples under the ids of the union: first the source's, then the target's."""
    source, target = graphs
    yield from (tuple(row) for row in source.triples.tolist())
    for head, relation, tail in target.triples.tolist():
        yield (
            head + source.num_entities,
            relation + source.num_relations,
            tail + source.num_entities,
        )


def heard(graphs: Pair[KnowledgeGraph]) -> list[dict[int, set[int]]]:
    """For each node: whom it hears from, and under which relations; r + R is the inverse of r."""
    nodes = sum(side.num_entities for side in graphs)
    relations = sum(side.num_relations for side in graphs)
    result: list[dict[int, set[int]]] = [{} for _ in range(nodes)]
    for head, relation, tail in union_triples(graphs):
        result[tail].setdefault(head, set()).add(relation)
        result[head].setdefault(tail, set()).add(relation + relations)
    return result
