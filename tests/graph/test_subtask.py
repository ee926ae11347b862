"""A task cut down to some entities, against a loop over its triples and seeds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clusterea.graph.subtask import subtask
from clusterea.types import AlignmentTask, IntArray, KnowledgeGraph, Pair
from small_graphs import pairs


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
