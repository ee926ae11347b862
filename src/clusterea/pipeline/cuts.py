"""METIS's parts of a task's graphs, begun beside other work and kept with the run."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from clusterea.graph.metis import MetisBeside, simple_graph
from clusterea.types import AlignmentTask, IntArray, KnowledgeGraph
from clusterea.workspace import Workspace, read_tensors, recipe_key

if TYPE_CHECKING:
    from collections.abc import Iterable


class Cuts:
    """A `Cut` for samplers. METIS takes one core for a minute at a million entities, and needs the
    graph alone: `begin` starts it in a process of its own, so that training does not wait for it.
    """

    def __init__(self, workspace: Workspace, task_key: str, task: AlignmentTask) -> None:
        self._workspace = workspace
        self._task_key = task_key
        self._task = task
        self._running: dict[str, MetisBeside] = {}

    def begin(self, samplers: Iterable[str], num_parts: int, seed: int) -> None:
        """Starts what these samplers will ask for, unless it is there."""
        if num_parts == 1:
            return
        for sampler in samplers:
            if sampler.startswith(("iscs", "metis-cps")):
                graphs = self._task.graphs
                graph = graphs.target if sampler.endswith("-reverse") else graphs.source
                key = self._key(graph, num_parts, seed)
                if key not in self._running and self._workspace.find(key) is None:
                    self._running[key] = MetisBeside(simple_graph(graph), num_parts, seed)

    def __call__(self, graph: KnowledgeGraph, num_parts: int, seed: int) -> IntArray:
        """(entities,): the part of each, as soon as it is there."""
        from clusterea.samplers import metis_cut

        if all(graph is not side for side in self._task.graphs):  # a mini-batch that is split
            return metis_cut(graph, num_parts, seed)
        key = self._key(graph, num_parts, seed)
        if self._workspace.find(key) is not None:
            return read_tensors(self._workspace.tensors_file(key))["parts"].numpy()
        if key in self._running:
            running = self._running.pop(key)
            try:
                parts = running.result()
            finally:
                running.stop()
        else:
            parts = metis_cut(graph, num_parts, seed)
        self._save(key, parts, num_parts, seed)
        return parts

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

    def _key(self, graph: KnowledgeGraph, num_parts: int, seed: int) -> str:
        side = "source" if graph is self._task.graphs.source else "target"
        recipe = {"side": side, "num_parts": num_parts, "seed": seed}
        return recipe_key("metis", recipe, {"task": self._task_key})

    def _save(self, key: str, parts: IntArray, num_parts: int, seed: int) -> None:
        from torch import from_numpy

        described = {
            "stage": "metis",
            "config": {"num_parts": num_parts, "seed": seed},
            "parents": {"task": self._task_key},
        }
        self._workspace.save_tensors(key, described, {"parts": from_numpy(np.array(parts))})
