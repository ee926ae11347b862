"""METIS partitions of a task's graphs, computed during training and stored with the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clusterea.graph.metis import RunningMetis, begin, simple_graph
from clusterea.pipeline.store import Made, Store
from clusterea.types import AlignmentTask, IntArray, KnowledgeGraph, Pair
from clusterea.workspace import recipe_key

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The part of a graph that each entity is in."""

    of_entity: IntArray  # (entities,)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors to store, see `Stored`."""
        from torch import from_numpy

        return {"parts": from_numpy(np.array(self.of_entity))}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], num_entities: Pair[int]) -> Parts:
        parts: IntArray = tensors["parts"].numpy()
        if parts.ndim != 1 or len(parts) not in num_entities or parts.min(initial=0) < 0:
            raise ValueError("parts must be one for each entity.")
        return cls(parts)


class Cuts:
    """A `Cut` for samplers.

    METIS takes a minute on one core for a million entities, and needs only the graph. `begin`
    starts it before training, so that both run at the same time.
    """

    def __init__(self, store: Store, whole: Made[AlignmentTask]) -> None:
        self._store = store
        self._whole = whole
        self._running: dict[str, RunningMetis] = {}

    def begin(self, samplers: Iterable[str], num_parts: int, seed: int) -> None:
        """Starts METIS for the graphs that these samplers need, unless the result is stored."""
        from clusterea.samplers import find_sampler

        for sampler in samplers:
            graph = find_sampler(sampler).graph_to_cut(self._whole.value.graphs)
            if num_parts > 1 and graph is not None:
                key = recipe_key("metis", *self._recipe(graph, num_parts, seed))
                if key not in self._running and not self._store.has(key):
                    self._running[key] = begin(simple_graph(graph), num_parts, seed)

    def __call__(self, graph: KnowledgeGraph, num_parts: int, seed: int) -> IntArray:
        """(entities,): the part of each entity; waits for METIS."""
        from clusterea.samplers import metis_cut

        graphs = self._whole.value.graphs
        if all(graph is not side for side in graphs):  # a mini-batch that is split further
            return metis_cut(graph, num_parts, seed)

        def make(key: str) -> Parts:
            running = self._running.pop(key, None)
            if running is None:
                return Parts(metis_cut(graph, num_parts, seed))
            try:
                return Parts(running.result())
            finally:
                running.stop()

        recipe, parents = self._recipe(graph, num_parts, seed)
        sizes = self._whole.value.num_entities
        return self._store.made("metis", recipe, parents, Parts, sizes, make).value.of_entity

    def close(self) -> None:
        """Stops METIS where it still runs."""
        while self._running:
            self._running.popitem()[1].stop()

    def _recipe(
        self, graph: KnowledgeGraph, num_parts: int, seed: int
    ) -> tuple[dict[str, object], dict[str, str]]:
        side = "source" if graph is self._whole.value.graphs.source else "target"
        recipe: dict[str, object] = {"side": side, "num_parts": num_parts, "seed": seed}
        return recipe, {"task": self._whole.key}
