"""A task cut down to one mini-batch."""

from __future__ import annotations

import numpy as np

from clusterea.types import AlignmentTask, IntArray, KnowledgeGraph, Pair


def subtask(task: AlignmentTask, entities: Pair[IntArray]) -> AlignmentTask:
    """The task of these entities alone, numbered by their positions in `entities`.

    Triples and seeds stay if both their entities do. Relations keep their numbers. Names and
    features are left out: no mini-batch needs them.
    """
    positions = task.graphs.zip(entities).map(
        lambda side: _positions(side[0].num_entities, side[1])
    )
    source, target = positions

    def within(pairs: IntArray) -> IntArray:
        kept = np.column_stack([source[pairs[:, 0]], target[pairs[:, 1]]])
        return kept[(kept >= 0).all(1)]

    return AlignmentTask(
        task.graphs.zip(positions.zip(entities)).map(lambda side: _within(side[0], *side[1])),
        within(task.seeds),
        task.tie_keys.zip(entities).map(lambda side: side[0][side[1]]),
        positions.zip(task.structural).map(lambda side: _kept(side[0][side[1]])),
        within(task.presumed),
    )


def _kept(positions: IntArray) -> IntArray:
    return positions[positions >= 0]


def _positions(count: int, entities: IntArray) -> IntArray:
    positions = np.full(count, -1, dtype=np.int64)
    positions[entities] = np.arange(len(entities))
    return positions


def _within(graph: KnowledgeGraph, positions: IntArray, entities: IntArray) -> KnowledgeGraph:
    heads, tails = positions[graph.heads], positions[graph.tails]
    kept = (heads >= 0) & (tails >= 0)
    triples = np.column_stack([heads[kept], graph.relations[kept], tails[kept]])
    return KnowledgeGraph(triples, len(entities), graph.num_relations)
