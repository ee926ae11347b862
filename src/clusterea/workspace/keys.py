"""Keys: an artifact is named by a hash of its recipe."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clusterea.types import AlignmentTask, Benchmark, Texts

VERSION = 5  # of the artifact format; part of every key

Value = TypeVar("Value", AlignmentTask, Benchmark)


def once(key: Callable[[Value], str]) -> Callable[[Value], str]:
    """The same function, which computes the key of each value once: these values don't change."""
    known: WeakKeyDictionary[Value, str] = WeakKeyDictionary()

    @wraps(key)
    def computed(value: Value) -> str:
        if value not in known:
            known[value] = key(value)
        return known[value]

    return computed


def recipe_key(stage: str, recipe: Mapping[str, Any], parents: Mapping[str, str]) -> str:
    """`stage-0123456789ab`: the same for the same stage, settings and parents."""
    text = json.dumps(
        {"version": VERSION, "stage": stage, "recipe": recipe, "parents": parents},
        sort_keys=True,
        ensure_ascii=False,
    )
    return f"{stage}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


@once
def task_key(task: AlignmentTask) -> str:
    """The key of a task: graphs, seeds, tie keys, structural entities, names, features, decisions.

    A stage sees nothing else. Test links are not part of it, so no artifact depends on them.
    """
    digest = hashlib.sha256()
    for graph in task.graphs:
        digest.update(f"{graph.num_entities} {graph.num_relations}".encode())
    _feed(digest, [graph.triples for graph in task.graphs])
    _feed(digest, [task.seeds, *task.tie_keys])
    if any(len(side) for side in task.structural):
        _feed(digest, task.structural)
    if len(task.presumed):
        _feed(digest, [task.presumed])
    if len(task.rejected) or any(len(side) for side in task.alone):
        _feed(digest, [task.rejected, *task.alone])
    if len(task.chosen):
        _feed(digest, [task.chosen])
    for names in task.names or ():
        _feed_texts(digest, names)
    for features in task.features or ():
        _feed(digest, [features])
    return recipe_key("task", {"fingerprint": digest.hexdigest()}, {})


@once
def fingerprint(benchmark: Benchmark) -> str:
    """A hash of the task, the names and the test links."""
    digest = hashlib.sha256(task_key(benchmark.task).encode())
    _feed(digest, [benchmark.test_links, *(benchmark.dangling or ())])
    for names in [*benchmark.names, *benchmark.relation_names]:
        _feed_strings(digest, names.arrow)
    for labels in benchmark.labels or ():
        _feed_texts(digest, labels)
    return digest.hexdigest()


def _feed_texts(digest: Any, texts: Texts) -> None:
    _feed(digest, [texts.offsets])
    _feed_strings(digest, texts.values)


def _feed_strings(digest: Any, strings: pa.Array) -> None:
    # The array may be a slice; concatenating copies it to the start of its buffers.
    whole = pa.concat_arrays([strings, pa.array([""], pa.large_string())])
    for buffer in whole.buffers()[1:]:
        digest.update(buffer)


def _feed(digest: Any, arrays: Iterable[NDArray[Any]]) -> None:
    for array in arrays:
        digest.update(str(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)
