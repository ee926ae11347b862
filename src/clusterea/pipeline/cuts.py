"""METIS's parts of a task's graphs, begun beside other work and kept with the run."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from clusterea.graph.metis import RunningMetis, begin, simple_graph
from clusterea.pipeline.artifacts import Artifacts
from clusterea.types import AlignmentTask, IntArray, KnowledgeGraph
from clusterea.workspace import recipe_key

if TYPE_CHECKING:
    from clusterea.pipeline.artifacts import Tensors


class Cuts:
    """A `Cut` for samplers.

    METIS takes one core for a minute at a million entities, and needs the graph alone: `begin`
    starts it in a process of its own, so that training does not wait for it.
    """

    def __init__(self, artifacts: Artifacts, task_key: str, task: AlignmentTask) -> None:
        self._artifacts = artifacts
        self._task_key = task_key
        self._task = task
        self._running: dict[str, RunningMetis] = {}

    def begin(self, samplers: Iterable[str], num_parts: int, seed: int) -> None:
        """Starts what these samplers will ask for, unless it is there."""
        from clusterea.samplers import find_sampler

        for sampler in samplers:
            graph = find_sampler(sampler).graph_to_cut(self._task.graphs)
            if num_parts > 1 and graph is not None:
                key = recipe_key("metis", *self._recipe(graph, num_parts, seed))
                if key not in self._running and not self._artifacts.has(key):
                    self._running[key] = begin(simple_graph(graph), num_parts, seed)

    def __call__(self, graph: KnowledgeGraph, num_parts: int, seed: int) -> IntArray:
        """(entities,): the part of each, as soon as it is there."""
        from clusterea.samplers import metis_cut

        if all(graph is not side for side in self._task.graphs):  # a mini-batch that is split
            return metis_cut(graph, num_parts, seed)
        recipe, parents = self._recipe(graph, num_parts, seed)

        def make() -> IntArray:
            running = self._running.pop(recipe_key("metis", recipe, parents), None)
            if running is None:
                return metis_cut(graph, num_parts, seed)
            try:
                return running.result()
            finally:
                running.stop()

        unpack = partial(_unpack, num_entities=graph.num_entities, num_parts=num_parts)
        return self._artifacts.tensors("metis", recipe, parents, make, _pack, unpack)[1]

    def close(self) -> None:
        """Ends what still runs."""
        while self._running:
            self._running.popitem()[1].stop()

    def __enter__(self) -> Cuts:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _recipe(
        self, graph: KnowledgeGraph, num_parts: int, seed: int
    ) -> tuple[dict[str, object], dict[str, str]]:
        side = "source" if graph is self._task.graphs.source else "target"
        recipe: dict[str, object] = {"side": side, "num_parts": num_parts, "seed": seed}
        return recipe, {"task": self._task_key}


def _pack(parts: IntArray) -> Tensors:
    from torch import from_numpy

    return {"parts": from_numpy(np.array(parts))}


def _unpack(tensors: Tensors, num_entities: int, num_parts: int) -> IntArray:
    parts: IntArray = tensors["parts"].numpy()
    if parts.shape != (num_entities,) or not np.isin(parts, np.arange(num_parts)).all():
        raise ValueError(f"parts must be one in [0, {num_parts}) for each entity.")
    return parts
