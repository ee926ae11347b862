"""`Views`: a pair of entities as the page shows it, in plain values for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from clusterea.report.readable import measured, one_line, shortened
from clusterea.report.unlinked import Side
from clusterea.review.context import Around, Context
from clusterea.types import Pair

if TYPE_CHECKING:
    from clusterea.types import Alignment, Benchmark, IntArray, Similarity

View: TypeAlias = dict[str, Any]
Value = TypeVar("Value")
MOST_NEIGHBORS = 12  # of a relation
MOST_RELATIONS = 24  # of an entity
MOST_EVIDENCE = 12  # pairs of neighbors for a pair, and as many neighbors against it
MOST_CANDIDATES = 10
MOST_LABELS = 6


class Views:
    """Makes views of pairs. In `blind` ones, the order says nothing about what the run found."""

    def __init__(
        self,
        benchmark: Benchmark,
        alignment: Alignment,
        similarity: Similarity,
        context: Context,
        *,
        blind: bool = False,
    ) -> None:
        self._names = benchmark.names
        self._labels = benchmark.labels
        self._relations = benchmark.relation_names
        self._short = benchmark.names.map(shortened)
        self._short_relations = benchmark.relation_names.map(shortened)
        self._measure = alignment.measure
        self._note = alignment.confidence_note
        self._similarity = similarity
        self._context = context
        self._blind = blind
        links: IntArray = alignment.links.cpu().numpy()
        pairs = zip(map(tuple, links.tolist()), alignment.confidence.tolist(), strict=True)
        self._links: dict[tuple[int | None, ...], float] = dict(pairs)

    def pair(self, source: int, target: int) -> View:
        """The two entities, their neighbors, and the evidence for and against the pair."""
        around = self._context.around(source, target)
        return {
            "source": self._entity("source", source, around.source),
            "target": self._entity("target", target, around.target),
            "for": self._support(around),
            "against": self._objections(around),
            "found": None if self._blind else self.found(source, target),
        }

    def found(self, source: int, target: int) -> View:
        """What the run says about a pair: whether it links the two, and how sure it is."""
        sure = self._links.get((source, target))
        if sure is not None:
            value = measured(sure, self._measure)
            return {"link": True, "measure": self._measure, "value": value, "note": self._note}
        score = self._score(source, target)
        note = "The similarity orders the candidates of an entity; it is not a probability."
        value = "not a candidate" if score is None else _told(score)
        return {"link": False, "measure": "similarity", "value": value, "note": note}

    def confidence(self, source: int | None, target: int | None) -> float | None:
        """The confidence or score of a link of the run; None for other pairs."""
        return self._links.get((source, target))

    def candidates(self, source: int, target: int) -> list[View]:
        """The other candidates of a source entity, best first; if blind, by name."""
        begin, end = self._similarity.row_offsets[source : source + 2].tolist()
        entities = self._similarity.columns[begin:end]
        scores = self._similarity.values[begin:end].float()
        order = scores.argsort(descending=True, stable=True)[: MOST_CANDIDATES + 1]
        others = [
            (entity, score)
            for entity, score in zip(entities[order].tolist(), scores[order].tolist(), strict=True)
            if entity != target
        ][:MOST_CANDIDATES]
        partners = self._context.partners
        found = []
        for entity, score in others:
            view = self._named("target", entity)
            view["evidence"] = self._context.count_shared(source, entity)
            rival = int(partners.of.target[entity])
            if not self._blind:
                view["score"] = _told(score)
                view["linked"] = self._named("source", rival) if rival >= 0 else None
            found.append(view)
        return sorted(found, key=_by_name) if self._blind else found

    def named(self, source: int, target: int) -> str:
        """The pair in one line, as `Paris and Parigi`."""
        return " and ".join(
            view["label"] or view["short"]
            for view in (self._named("source", source), self._named("target", target))
        )

    # ---- parts

    def _score(self, source: int, target: int) -> float | None:
        begin, end = self._similarity.row_offsets[source : source + 2].tolist()
        cells = (self._similarity.columns[begin:end] == target).nonzero().flatten()
        return float(self._similarity.values[begin + int(cells[0])]) if len(cells) else None

    def _named(self, side: Side, entity: int) -> View:
        name = _of(self._names, side)[entity]
        texts = self._texts(side, entity)
        return {
            "number": entity,
            "id": one_line(name),
            "short": one_line(_of(self._short, side)(name)),
            "label": texts[0] if texts else None,
        }

    def _texts(self, side: Side, entity: int) -> list[str]:
        if self._labels is None:
            return []
        own = _of(self._labels, side).of(entity)
        return [text for text in map(one_line, own) if text]

    def _step(self, side: Side, kind: int) -> View:
        relations = _of(self._relations, side)
        name = relations[kind % len(relations)]
        return {
            "kind": kind,
            "relation": one_line(name),
            "short": one_line(_of(self._short_relations, side)(name)),
            "outward": kind < len(relations),
        }

    def _entity(self, side: Side, entity: int, around: Around) -> View:
        texts = self._texts(side, entity)
        kinds, counts = np.unique(around.kinds, return_counts=True)
        shown = zip(kinds[:MOST_RELATIONS].tolist(), counts.tolist(), strict=False)
        return {
            **self._named(side, entity),
            "labels": texts[1 : 1 + MOST_LABELS],
            "neighbors": len(np.unique(around.neighbors)),
            "groups": [self._group(side, kind, count, around) for kind, count in shown],
            "more": max(len(kinds) - MOST_RELATIONS, 0),
        }

    def _group(self, side: Side, kind: int, count: int, around: Around) -> View:
        """The neighbors by one relation, and the other graph's relation that corresponds to it."""
        own = around.kinds == kind
        neighbors, partners = around.neighbors[own], around.partners[own]
        states = np.where(around.is_shared[own], 0, np.where(around.is_apart[own], 1, 2))
        order = np.arange(count) if self._blind else np.argsort(states, kind="stable")
        other: Side = "target" if side == "source" else "source"
        shown = []
        for i in order[:MOST_NEIGHBORS].tolist():
            view = self._named(side, int(neighbors[i]))
            view["state"] = ("for", "against", "")[int(states[i])]
            has_one = int(partners[i]) >= 0
            view["partner"] = self._named(other, int(partners[i])) if has_one else None
            shown.append(view)
        found = _of(self._context.counterparts, side).get(kind)
        match = None
        if found is not None:
            match = {**self._step(other, found.kind), "count": found.count, "of": found.of}
        return {
            **self._step(side, kind),
            "total": count,
            "more": count - len(shown),
            "neighbors": shown,
            "match": match,
        }

    def _support(self, around: Pair[Around]) -> View:
        """The pairs of neighbors that are matched to each other."""
        partners = self._context.partners
        shared = np.unique(around.source.neighbors[around.source.is_shared])
        if not self._blind:
            is_link = partners.origins[shared] == 0
            shared = shared[np.lexsort((-partners.confidence[shared], is_link))]
        rows = []
        for neighbor in shared[:MOST_EVIDENCE].tolist():
            partner = int(partners.of.source[neighbor])
            origin = partners.origin(neighbor)
            sure = measured(float(partners.confidence[neighbor]), self._measure)
            rows.append(
                {
                    "source": self._named("source", neighbor),
                    "target": self._named("target", partner),
                    "by": [
                        [self._step("source", k) for k in around.source.kinds_to(neighbor)],
                        [self._step("target", k) for k in around.target.kinds_to(partner)],
                    ],
                    "origin": origin,
                    "sure": None if self._blind or origin != "link" else sure,
                }
            )
        return {"total": len(shared), "pairs": rows}

    def _objections(self, around: Pair[Around]) -> View:
        """The neighbors of one entity whose counterpart is no neighbor of the other."""
        rows, total = [], 0
        sides: tuple[tuple[Side, Side, Around], ...] = (
            ("source", "target", around.source),
            ("target", "source", around.target),
        )
        for side, other, own in sides:
            apart, first = np.unique(own.neighbors[own.is_apart], return_index=True)
            partners = own.partners[own.is_apart][first]
            total += len(apart)
            for neighbor, partner in list(zip(apart.tolist(), partners.tolist(), strict=True))[
                : MOST_EVIDENCE // 2
            ]:
                steps = [self._step(side, kind) for kind in own.kinds_to(neighbor)]
                rows.append(
                    {
                        "side": side,
                        "neighbor": self._named(side, neighbor),
                        "partner": self._named(other, partner),
                        "by": steps,
                    }
                )
        return {"total": total, "neighbors": rows}


def _of(pair: Pair[Value], side: Side) -> Value:
    return pair.source if side == "source" else pair.target


def _told(score: float) -> str:
    return "<0.001" if 0 < score < 0.0005 else f"{score:.3f}"


def _by_name(view: View) -> tuple[str, str]:
    return (view["label"] or view["short"], view["id"])
