"""A task cut down to one mini-batch."""

from __future__ import annotations

import numpy as np

from clusterea.types import AlignmentTask, IntArray, KnowledgeGraph, Pair


def subtask(task: AlignmentTask, entities: Pair[IntArray]) -> AlignmentTask:
    """The task of these entities alone, numbered by their places in `entities`.

    Triples and seeds stay whose both ends do; relations keep their numbers.
    """
    places = task.graphs.zip(entities).map(lambda side: _places(side[0].num_entities, side[1]))
    source, target = places
    seeds = np.column_stack([source[task.seeds[:, 0]], target[task.seeds[:, 1]]])
    return AlignmentTask(
        task.graphs.zip(places.zip(entities)).map(lambda side: _within(side[0], *side[1])),
        seeds[(seeds >= 0).all(1)],
        task.tie_keys.zip(entities).map(lambda side: side[0][side[1]]),
        places.zip(task.structural).map(lambda side: _kept(side[0][side[1]])),
    )


def _kept(places: IntArray) -> IntArray:
    return places[places >= 0]


def _places(count: int, entities: IntArray) -> IntArray:
    places = np.full(count, -1, dtype=np.int64)
    places[entities] = np.arange(len(entities))
    return places


def _within(graph: KnowledgeGraph, places: IntArray, entities: IntArray) -> KnowledgeGraph:
    heads, tails = places[graph.heads], places[graph.tails]
    kept = (heads >= 0) & (tails >= 0)
    triples = np.column_stack([heads[kept], graph.relations[kept], tails[kept]])
    return KnowledgeGraph(triples, len(entities), graph.num_relations)
