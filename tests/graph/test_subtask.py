"""A task cut down to some entities, against a loop over its triples and seeds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterea.graph.subtask import subtask
from clusterea.types import AlignmentTask, IntArray, KnowledgeGraph, Pair
from small_graphs import HAND, pairs

NOBODY: IntArray = np.empty(0, dtype=np.int64)


@given(pairs(), st.data())
def test_any_task(graphs: Pair[KnowledgeGraph], data: st.DataObject) -> None:
    def some(count: int) -> IntArray:
        chosen = data.draw(st.lists(st.integers(0, count - 1), unique=True))
        return np.array(chosen, dtype=np.int64)

    sizes = graphs.map(lambda side: side.num_entities)
    ids = np.arange(min(sizes))
    keys = sizes.map(lambda count: 100 - np.arange(count))
    last = sizes.map(lambda count: np.arange(len(ids), count)[-1:])  # in no seed, if there
    task = AlignmentTask(graphs, np.stack([ids, ids[::-1]], 1), keys, last)
    entities = sizes.map(some)
    small = subtask(task, entities)
    for before, after, kept, key in zip(
        graphs, small.graphs, entities.map(lambda side: side.tolist()), small.tie_keys, strict=True
    ):
        assert (after.num_entities, after.num_relations) == (len(kept), before.num_relations)
        assert after.triples.tolist() == [
            [kept.index(head), relation, kept.index(tail)]
            for head, relation, tail in before.triples.tolist()
            if head in kept and tail in kept
        ]
        assert key.tolist() == [100 - entity for entity in kept]
    for never, ids, wanted in zip(small.structural, entities, last, strict=True):
        assert ids[never].tolist() == [entity for entity in wanted if entity in ids]
    source, target = entities.map(lambda side: side.tolist())
    assert small.seeds.tolist() == [
        [source.index(one), target.index(other)]
        for one, other in task.seeds.tolist()
        if one in source and other in target
    ]


def test_everybody_in_order_is_the_task_itself() -> None:
    task = AlignmentTask(HAND, np.array([[0, 1], [4, 0]]))
    whole = subtask(task, HAND.map(lambda side: np.arange(side.num_entities)))
    assert whole.seeds.tolist() == task.seeds.tolist()
    for before, after in zip(task.graphs, whole.graphs, strict=True):
        assert after.triples.tolist() == before.triples.tolist()


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_side_may_be_empty(side: str) -> None:
    task = AlignmentTask(HAND, np.array([[0, 1], [4, 0]]))
    all_of_it = Pair(np.arange(6), np.arange(4))
    entities = (
        Pair(NOBODY, all_of_it.target) if side == "source" else Pair(all_of_it.source, NOBODY)
    )
    small = subtask(task, entities)
    assert getattr(small.graphs, side).num_entities == 0
    assert getattr(small.graphs, side).num_triples == 0
    assert small.num_seeds == 0
