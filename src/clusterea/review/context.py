"""`Context`: the neighbors of two entities, and which of them are matched to each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from clusterea.graph.labeled_edges import LabeledEdges
from clusterea.report.unlinked import Side
from clusterea.types import IntArray, Pair

if TYPE_CHECKING:
    from clusterea.types import Alignment, AlignmentTask, Decisions

Origin: TypeAlias = Literal["link", "seed", "person"]
NO_PARTNER = -1
_ORIGINS: tuple[Origin, ...] = ("link", "seed", "person")
_LEAST_COUNT, _LEAST_SHARE = 2, 0.25  # of edges, for relations to correspond


def side_of(pair: Pair[IntArray], side: Side) -> IntArray:
    """The array of one side."""
    return pair.source if side == "source" else pair.target


@dataclass(frozen=True, slots=True, eq=False)
class Partners:
    """The counterpart of each entity: by a person, a seed or a link."""

    of: Pair[IntArray]  # (entities,): NO_PARTNER for none
    origins: NDArray[np.int8]  # (source entities,): index into _ORIGINS
    confidence: NDArray[np.float64]  # (source entities,): of links; 1 for seeds and persons

    @classmethod
    def found(cls, task: AlignmentTask, alignment: Alignment) -> Partners:
        """The counterparts after a run. If an entity has several links, the first counts."""
        links: IntArray = alignment.links.cpu().numpy()[::-1]
        of = task.num_entities.map(lambda size: np.full(size, NO_PARTNER))
        origins = np.zeros(task.num_entities.source, np.int8)
        confidence = np.ones(task.num_entities.source)
        confidence[links[:, 0]] = alignment.confidence.double().cpu().numpy()[::-1]
        for pairs in (links, task.seeds):
            of.source[pairs[:, 0]], of.target[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
        origins[task.seeds[:, 0]] = _ORIGINS.index("seed")
        confidence[task.seeds[:, 0]] = 1
        return cls(of, origins, confidence)

    def after(self, decisions: Decisions) -> Partners:
        """The same, with what a person decided."""
        of = self.of.map(np.copy)
        origins, confidence = self.origins.copy(), self.confidence.copy()

        def part(sources: IntArray, targets: IntArray) -> None:
            """Takes away the counterparts of these entities, and theirs."""
            for entities, own, others in (
                (sources, of.source, of.target),
                (targets, of.target, of.source),
            ):
                before = own[entities]
                others[before[before >= 0]] = NO_PARTNER
                own[entities] = NO_PARTNER

        rejected, accepted = decisions.rejected, decisions.accepted
        is_held = of.source[rejected[:, 0]] == rejected[:, 1]
        part(rejected[is_held, 0], rejected[is_held, 1])
        part(*decisions.alone)
        part(accepted[:, 0], accepted[:, 1])
        of.source[accepted[:, 0]], of.target[accepted[:, 1]] = accepted[:, 1], accepted[:, 0]
        origins[accepted[:, 0]] = _ORIGINS.index("person")
        confidence[accepted[:, 0]] = 1
        return replace(self, of=of, origins=origins, confidence=confidence)

    def origin(self, source: int) -> Origin:
        """Where the counterpart of a source entity comes from."""
        return _ORIGINS[int(self.origins[source])]


@dataclass(frozen=True, slots=True)
class Counterpart:
    """The relation of the other graph that a relation corresponds to most often."""

    kind: int
    count: int  # edges between linked entities that have both relations
    of: int  # edges between linked entities that have the first


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """The neighbors of one entity of a pair, by relation and direction."""

    neighbors: IntArray  # (edges,)
    kinds: IntArray  # (edges,): the relation, plus the number of relations if it leads here
    partners: IntArray  # (edges,): the counterpart of the neighbor
    is_shared: NDArray[np.bool_]  # (edges,): the counterpart is a neighbor of the other entity

    @property
    def is_apart(self) -> NDArray[np.bool_]:
        """(edges,): the neighbor has a counterpart, which is no neighbor of the other entity."""
        apart: NDArray[np.bool_] = (self.partners >= 0) & ~self.is_shared
        return apart

    def kinds_to(self, neighbor: int) -> list[int]:
        """The relations to a neighbor."""
        kinds: list[int] = self.kinds[self.neighbors == neighbor].tolist()
        return kinds


class Context:
    """Looks up neighbors. Building it sorts the triples of both graphs once."""

    def __init__(self, task: AlignmentTask, alignment: Alignment) -> None:
        cpu = torch.device("cpu")
        self._edges = task.graphs.map(lambda graph: LabeledEdges.of(graph, cpu))
        self._neighbors: Pair[IntArray] = self._edges.map(lambda each: each.neighbors().numpy())
        self._found = Partners.found(task, alignment)
        self.partners = self._found
        of = self._found.of
        self.counterparts: Pair[dict[int, Counterpart]] = Pair(
            _corresponding(self._edges, of.source),
            _corresponding(self._edges.swap(), of.target),
        )

    def decide(self, decisions: Decisions) -> None:
        """Uses what a person decided in place of links that it contradicts."""
        self.partners = self._found.after(decisions)

    def around(self, source: int, target: int) -> Pair[Around]:
        """The neighbors of the two entities of a pair."""
        neighbors = Pair(
            self._neighbors.source[self._span("source", source)],
            self._neighbors.target[self._span("target", target)],
        )

        def one(side: Side, entity: int, own: IntArray, others: IntArray) -> Around:
            partners = side_of(self.partners.of, side)[own]
            edges = self._edges.source if side == "source" else self._edges.target
            _, found = edges.of_entities(torch.tensor([entity]))
            kinds: IntArray = edges.kinds(found).numpy()
            return Around(own, kinds, partners, (partners >= 0) & np.isin(partners, others))

        return Pair(
            one("source", source, neighbors.source, neighbors.target),
            one("target", target, neighbors.target, neighbors.source),
        )

    def count_shared(self, source: int, target: int) -> int:
        """The number of pairs of neighbors that are matched to each other."""
        own = np.unique(self._neighbors.source[self._span("source", source)])
        partners = self.partners.of.source[own]
        others = self._neighbors.target[self._span("target", target)]
        return int(np.isin(partners[partners >= 0], others).sum())

    def _span(self, side: Side, entity: int) -> slice:
        edges = self._edges.source if side == "source" else self._edges.target
        begin, end = edges.offsets[entity : entity + 2].tolist()
        return slice(begin, end)


def _corresponding(edges: Pair[LabeledEdges], partner: IntArray) -> dict[int, Counterpart]:
    """The counterpart of each kind of the first graph's edges, if it has one.

    Args:
        edges: Of the two graphs.
        partner: (entities of the first graph,): the counterparts.
    """
    to = torch.from_numpy(partner)
    ends = torch.stack([to[edges.source.entities()], to[edges.source.neighbors()]])
    linked = (ends >= 0).all(0).nonzero().flatten()
    kinds = edges.source.kinds(linked)
    found, theirs = edges.target.between(*ends[:, linked])
    width = max(edges.target.num_kinds, 1)
    keys, counts = torch.unique(
        kinds[found] * width + edges.target.kinds(theirs), return_counts=True
    )
    totals = kinds.bincount(minlength=edges.source.num_kinds).tolist()
    best: dict[int, Counterpart] = {}
    for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
        kind, other = divmod(key, width)
        is_enough = count >= max(_LEAST_COUNT, _LEAST_SHARE * totals[kind])
        if is_enough and (kind not in best or count > best[kind].count):
            best[kind] = Counterpart(other, count, totals[kind])
    return best
