"""Evidence for a match: neighbors of its two entities that are matched to each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from clusterea.types import IntArray, KnowledgeGraph, Pair

if TYPE_CHECKING:
    from clusterea.types import Alignment, AlignmentTask, Names

Id = TypeVar("Id", int, str)  # entities and relations as numbers, or as names


@dataclass(frozen=True, slots=True)
class Step(Generic[Id]):
    """One relation between an entity and its neighbor."""

    relation: Id
    outward: bool  # the entity is the head, its neighbor the tail


@dataclass(frozen=True, slots=True)
class Support(Generic[Id]):
    """Two neighbors that are matched to each other, and the relations to them."""

    neighbors: Pair[Id]
    relations: Pair[tuple[Step[Id], ...]]
    by_seed: bool
    confidence: float | None  # of the link between the neighbors; None for a seed

    @staticmethod
    def named(
        support: Support[int], names: Pair[Names], relation_names: Pair[Names]
    ) -> Support[str]:
        """The same support with names in place of numbers."""
        neighbors = support.neighbors.zip(names).map(lambda side: side[1][side[0]])
        relations = support.relations.zip(relation_names).map(
            lambda side: tuple(Step(side[1][step.relation], step.outward) for step in side[0])
        )
        return Support(neighbors, relations, support.by_seed, support.confidence)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for one match: the strongest supports, and their total number."""

    supports: tuple[Support[int], ...]
    total: int  # number of supports, also beyond the limit
    num_neighbors: Pair[int]  # distinct neighbors of each of the two entities


class EvidenceIndex:
    """Finds the evidence for a match in time proportional to the two entities' degrees.

    Building it sorts the triples of both graphs once: all, or those of some entities.
    """

    def __init__(
        self, task: AlignmentTask, alignment: Alignment, asked: IntArray | None = None
    ) -> None:
        """Makes the index.

        Args:
            task: The graphs and the seeds.
            alignment: The links.
            asked: (n, 2): the only matches that will be asked for. Default: any.
        """
        graphs = task.graphs
        if asked is not None:
            graphs = graphs.zip(Pair(*asked.T)).map(lambda side: _around(*side))
        self._neighborhoods = graphs.map(_Neighborhoods)
        self._counterparts = _Counterparts(task, alignment)
        self._tie_keys = task.tie_keys

    def evidence(
        self, source_entity: int, target_entity: int, *, limit: int | None = None
    ) -> Evidence:
        """The evidence for a match: seeds first, then by descending confidence, at most `limit`.

        An entity is not its own neighbor, so a match never supports itself.
        """
        source = self._neighborhoods.source.around(source_entity, "source_entity")
        target = self._neighborhoods.target.around(target_entity, "target_entity")
        pairs, confidence, by_seed = self._counterparts.of(source.neighbors)
        shared = np.isin(pairs[:, 1], target.neighbors)
        pairs, confidence, by_seed = pairs[shared], confidence[shared], by_seed[shared]
        keys = self._tie_keys
        order = np.lexsort(
            (keys.target[pairs[:, 1]], keys.source[pairs[:, 0]], -confidence, ~by_seed)
        )
        supports = tuple(
            Support(
                Pair(int(pairs[i, 0]), int(pairs[i, 1])),
                Pair(source.steps_to(pairs[i, 0]), target.steps_to(pairs[i, 1])),
                bool(by_seed[i]),
                None if by_seed[i] else float(confidence[i]),
            )
            for i in order[:limit]
        )
        return Evidence(supports, len(order), Pair(len(source.neighbors), len(target.neighbors)))


def evidence(
    task: AlignmentTask,
    alignment: Alignment,
    source_entity: int,
    target_entity: int,
    *,
    limit: int | None = None,
) -> list[Support[int]]:
    """The supports of one match, strongest first. For many matches, use `EvidenceIndex`."""
    index = EvidenceIndex(task, alignment, np.array([[source_entity, target_entity]]))
    return list(index.evidence(source_entity, target_entity, limit=limit).supports)


def _around(graph: KnowledgeGraph, entities: IntArray) -> KnowledgeGraph:
    """The graph with the triples of these entities alone."""
    is_asked = np.zeros(graph.num_entities, dtype=bool)
    is_asked[entities[(entities >= 0) & (entities < graph.num_entities)]] = True  # else an error
    kept = is_asked[graph.heads] | is_asked[graph.tails]
    return replace(graph, triples=graph.triples[kept])


class _Neighborhoods:
    """The edges of each entity of a graph."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        import torch

        from clusterea.graph.labeled_edges import LabeledEdges

        edges = LabeledEdges.of(graph, torch.device("cpu"), siblings=False)
        self._neighbors: IntArray = edges.neighbors().numpy()
        self._kinds: IntArray = edges.kinds().numpy()
        self._offsets: IntArray = edges.offsets.numpy()
        self._graph = graph

    def around(self, entity: int, name: str) -> _Neighborhood:
        size = self._graph.num_entities
        if not 0 <= entity < size:
            raise ValueError(f"{name} must lie in [0, {size}). Got {entity} instead.")
        edges = slice(self._offsets[entity], self._offsets[entity + 1])
        return _Neighborhood(self._neighbors[edges], self._kinds[edges], self._graph.num_relations)


class _Neighborhood:
    """The edges of one entity, by neighbor."""

    def __init__(self, ends: IntArray, kinds: IntArray, num_relations: int) -> None:
        self._ends = ends
        self._kinds = kinds
        self._num_relations = num_relations
        self.neighbors: IntArray = np.unique(ends)

    def steps_to(self, neighbor: np.int64) -> tuple[Step[int], ...]:
        first, last = np.searchsorted(self._ends, [neighbor, neighbor + 1])
        size = self._num_relations
        found = sorted((kind % size, kind < size) for kind in self._kinds[first:last].tolist())
        return tuple(Step(relation, outward) for relation, outward in found)


class _Counterparts:
    """The counterparts of each source entity, by a seed or by a link."""

    def __init__(self, task: AlignmentTask, alignment: Alignment) -> None:
        sizes = task.graphs.map(lambda graph: graph.num_entities)
        links: IntArray = alignment.links.cpu().numpy()
        confidence = alignment.confidence.double().cpu().numpy()
        # A link that repeats a seed adds nothing.
        new = ~np.isin(links @ [sizes.target, 1], task.seeds @ [sizes.target, 1])
        pairs = np.concatenate([task.seeds, links[new]])
        order = np.argsort(pairs[:, 0], kind="stable")
        self._pairs = pairs[order]
        self._confidence = np.concatenate([np.ones(task.num_seeds), confidence[new]])[order]
        self._by_seed = order < task.num_seeds
        self._offsets = _offsets(pairs[:, 0], sizes.source)

    def of(self, entities: IntArray) -> tuple[IntArray, NDArray[np.float64], NDArray[np.bool_]]:
        """(n, 2), (n,), (n,): the matches of `entities`, their confidence, and which are seeds."""
        starts, ends = self._offsets[entities], self._offsets[entities + 1]
        counts = ends - starts
        shifts = np.repeat(ends - counts.cumsum(), counts)
        rows = shifts + np.arange(len(shifts))
        return self._pairs[rows], self._confidence[rows], self._by_seed[rows]


def _offsets(owners: IntArray, size: int) -> IntArray:
    """(size + 1,): the start of each owner's entries after sorting by owner."""
    return np.concatenate([np.zeros(1, np.int64), np.bincount(owners, minlength=size)]).cumsum()
