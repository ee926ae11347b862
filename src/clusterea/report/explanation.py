"""`explained`: why an entity has its link, or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from clusterea.report.evidence import Evidence, EvidenceIndex, Step, Support
from clusterea.report.lookup import find_entity
from clusterea.report.readable import confidence, labeled, listed
from clusterea.report.unlinked import Candidate, Side, candidates_of
from clusterea.types.alignment import BY_FEATURES, BY_NAMES, BY_STRUCTURE
from clusterea.types.html import html_table

if TYPE_CHECKING:
    from clusterea.types import (
        Alignment,
        Benchmark,
        Measure,
        Names,
        Pair,
        Similarity,
        Texts,
    )

_Table: TypeAlias = tuple[str, tuple[str, ...], list[tuple[str, ...]]]  # title, header, rows
# Source, target, confidence (None for a seed) and grounds of a pair.
_Link: TypeAlias = tuple[int, int, float | None, tuple[str, ...] | None]
GROUNDS = {BY_STRUCTURE: "structure", BY_NAMES: "names", BY_FEATURES: "features"}


@dataclass(frozen=True, slots=True)
class Linked:
    """A seed or a link of the entity, and its evidence."""

    source: int
    target: int
    confidence: float | None  # None for a seed
    evidence: Evidence
    grounds: tuple[str, ...] | None = None  # what supports it, of GROUNDS; None: not recorded


@dataclass(frozen=True, slots=True)
class Unlinked:
    """A side on which the entity has no link, and its candidates there."""

    side: Side
    entity: int
    candidates: tuple[Candidate, ...]
    never_linked: bool = False  # a blank node, or a term of RDF's own vocabularies
    is_alone: bool = False  # a person said that it has no counterpart

    def told(self) -> str:
        """The result for the entity, without its name."""
        if self.is_alone:
            return "has no link: an answer says that it has no counterpart."
        if self.never_linked:
            return "is never linked: it is a blank node or a term of RDF's own vocabularies."
        if not self.candidates:
            return "has no link. No entity of the other graph is a candidate."
        return "has no link. Its best candidates:"


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """The links of an entity with their evidence, or its candidates."""

    entity: str  # the name or label that was looked up
    answers: tuple[Linked | Unlinked, ...]
    names: Pair[Names]
    relation_names: Pair[Names]
    measure: Measure = "score"  # of the alignment
    confidence_note: str = ""  # of the alignment, if a confidence or score is shown
    labels: Pair[Texts] | None = None

    def supports(self, linked: Linked) -> list[Support[str]]:
        """The evidence for a link, with names."""
        return [
            Support.named(each, self.names, self.relation_names)
            for each in linked.evidence.supports
        ]

    def how(self, linked: Linked) -> str:
        """`a seed`, or as `confidence 0.87`, or as `score 0.87; by structure and names`."""
        if linked.confidence is None:
            return "a seed"
        sure = f"{self.measure} {confidence(linked.confidence)}"
        return f"{sure}; by {listed(linked.grounds)}" if linked.grounds else sure

    def why(self, candidate: Candidate, rival: str) -> str:
        """Why a candidate was not chosen, in a few words."""
        if candidate.reason == "seed":
            return f"a seed links it to {rival}"
        sure = f"{self.measure} {confidence(candidate.confidence)}"
        if candidate.reason == "linked":
            return f"linked to {rival}, {sure}"
        if candidate.reason == "left_out":
            return f"its link to {rival} was left out by --min-confidence or --top: {sure}"
        if candidate.reason == "unsure":
            return "dropped: it is too unsure"
        return "also without a link; the matching method did not pair them"

    def name(self, side: Side, entity: int) -> str:
        """The name of an entity, which is its id in the data."""
        return (self.names.source if side == "source" else self.names.target)[entity]

    def label(self, side: Side, entity: int) -> str | None:
        """The preferred label of an entity; None if it has none."""
        if self.labels is None:
            return None
        texts = self.labels.source if side == "source" else self.labels.target
        return next(iter(texts.of(entity)), None)

    def shown(self, side: Side, entity: int, short: Callable[[str], str] = str) -> str:
        """`Label (name)`, or only the name. `short` shortens the name."""
        return labeled(short(self.name(side, entity)), self.label(side, entity))

    def __repr__(self) -> str:
        lines = []
        for title, header, rows in self._tables():
            lines += [title, *("  " + "   ".join(row) for row in (header, *rows))]
        return "\n".join([*lines, self.confidence_note] if self.confidence_note else lines)

    def _repr_html_(self) -> str:
        """Tables for notebooks."""
        note = self.confidence_note
        return "".join(
            html_table(title, header, rows, note=note) for title, header, rows in self._tables()
        )

    def _tables(self) -> list[_Table]:
        return [
            self._linked_table(each) if isinstance(each, Linked) else self._unlinked_table(each)
            for each in self.answers
        ]

    def _linked_table(self, linked: Linked) -> _Table:
        source, target = self.shown("source", linked.source), self.shown("target", linked.target)
        count = linked.evidence.total
        header = ("source neighbor", "by", "target neighbor", "by", "linked")
        rows: list[tuple[str, ...]] = [
            (
                self.shown("source", each.neighbors.source),
                steps(named.relations.source),
                self.shown("target", each.neighbors.target),
                steps(named.relations.target),
                "seed" if each.by_seed else confidence(each.confidence),
            )
            for each, named in zip(linked.evidence.supports, self.supports(linked), strict=True)
        ]
        shown = f"pairs of linked neighbors: {count:,}"
        if count > len(rows):
            shown += f", {len(rows):,} shown"
        return f"{source} = {target} ({self.how(linked)}; {shown})", header, rows

    def _unlinked_table(self, unlinked: Unlinked) -> _Table:
        side, other = unlinked.side, other_side(unlinked.side)
        rows: list[tuple[str, ...]] = [
            (
                self.shown(other, each.entity),
                f"{each.score:.3f}",
                self.why(each, "" if each.rival is None else self.shown(side, each.rival)),
            )
            for each in unlinked.candidates
        ]
        header = ("candidate", "similarity", "why it was not chosen") if rows else ()
        who = self.shown(side, unlinked.entity)
        return f"{who} ({side}) {unlinked.told()}", header, rows


def other_side(side: Side) -> Side:
    """The side of an entity's counterparts."""
    return "target" if side == "source" else "source"


def explained(
    benchmark: Benchmark,
    found: Alignment,
    given: Alignment,
    similarity: Callable[[], Similarity],
    chosen: Callable[[], Alignment] | None,
    entity: str,
    *,
    limit: int,
) -> Explanation:
    """Explains the links, or the missing link, of an entity on each side that has it.

    Args:
        benchmark: The graphs, the seeds and the names.
        found: All links.
        given: The links that are shown: all, or the most confident.
        similarity: Returns the fused similarity; called for an entity without a link.
        chosen: Returns the links with those that abstaining dropped; None if none were dropped.
        entity: The name or label of the entity.
        limit: Most pairs of neighbors, or candidates.
    """
    task = benchmark.task
    answers: list[Linked | Unlinked] = []
    before_cut = None if chosen is None else cache(chosen)
    pairs: list[_Link] = []
    for side, number in find_entity(benchmark, entity).items():
        own = _pairs(benchmark, given, side, number)
        pairs += [pair for pair in own if pair not in pairs]
        if not own:
            alone, structural = (
                both.source if side == "source" else both.target
                for both in (task.alone, task.structural)
            )
            if number in alone or number in structural:
                answers.append(
                    Unlinked(side, number, (), number in structural, is_alone=number in alone)
                )
                continue
            options = candidates_of(
                side, number, similarity(), task, found, given, before_cut, limit=limit
            )
            answers.append(Unlinked(side, number, options))
    if pairs:
        index = EvidenceIndex(task, given, np.array([pair[:2] for pair in pairs]))
        answers += [
            Linked(source, target, confidence, index.evidence(source, target, limit=limit), grounds)
            for source, target, confidence, grounds in pairs
        ]
    note = given.confidence_note if any(map(_shows_confidence, answers)) else ""
    return Explanation(
        entity,
        tuple(answers),
        benchmark.names,
        benchmark.relation_names,
        given.measure,
        note,
        benchmark.labels,
    )


def _shows_confidence(answer: Linked | Unlinked) -> bool:
    if isinstance(answer, Linked):
        return answer.confidence is not None
    return any(each.confidence is not None for each in answer.candidates)


def steps(
    some: tuple[Step[str], ...], short: Callable[[str], str] = str, between: str = ", "
) -> str:
    """Relations with an arrow for their direction."""
    return between.join(
        f"{short(step.relation)} →" if step.outward else f"← {short(step.relation)}"
        for step in some
    )


def _pairs(benchmark: Benchmark, alignment: Alignment, side: Side, number: int) -> list[_Link]:
    """The seeds and links of an entity; a seed has no confidence and no grounds."""
    column = 0 if side == "source" else 1
    seeds = benchmark.task.seeds
    rows = (alignment.links[:, column] == number).nonzero().flatten()
    pairs: list[_Link] = [
        (source, target, None, None)
        for source, target in seeds[seeds[:, column] == number].tolist()
    ]
    for row in rows.tolist():
        source, target = alignment.links[row].tolist()
        pairs.append((source, target, float(alignment.confidence[row]), _grounds(alignment, row)))
    return pairs


def _grounds(alignment: Alignment, row: int) -> tuple[str, ...] | None:
    if alignment.grounds is None:
        return None
    bits = int(alignment.grounds[row])
    return tuple(word for bit, word in GROUNDS.items() if bits & bit)
