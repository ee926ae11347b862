"""A task cut down to one mini-batch."""

from __future__ import annotations

import numpy as np

from clusterea.types import AlignmentTask, IntArray, KnowledgeGraph, Pair


def subtask(task: AlignmentTask, entities: Pair[IntArray]) -> AlignmentTask:
    """The task of these entities alone, numbered by their positions in `entities`.

    Triples and seeds stay if both their entities do. Relations keep their numbers.
    """
    positions = task.graphs.zip(entities).map(
        lambda side: _positions(side[0].num_entities, side[1])
    )
    source, target = positions
    seeds = np.column_stack([source[task.seeds[:, 0]], target[task.seeds[:, 1]]])
    return AlignmentTask(
        task.graphs.zip(positions.zip(entities)).map(lambda side: _within(side[0], *side[1])),
        seeds[(seeds >= 0).all(1)],
        task.tie_keys.zip(entities).map(lambda side: side[0][side[1]]),
        positions.zip(task.structural).map(lambda side: _kept(side[0][side[1]])),
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
