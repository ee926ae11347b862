"""`explained`: why an entity has its link, or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from clusterea.errors import InputError
from clusterea.report.evidence import Evidence, EvidenceIndex, Step, Support
from clusterea.report.readable import confidence
from clusterea.report.unlinked import Candidate, Side, candidates_of
from clusterea.types.html import html_table

if TYPE_CHECKING:
    from clusterea.types import Alignment, Benchmark, Measure, Names, Pair, Similarity

_Table: TypeAlias = tuple[str, tuple[str, ...], list[tuple[str, ...]]]  # title, header, rows
SIMILAR = 5  # names suggested for an unknown name


@dataclass(frozen=True, slots=True)
class Linked:
    """A seed or a link of the entity, and its evidence."""

    source: int
    target: int
    confidence: float | None  # None for a seed
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Unlinked:
    """A side on which the entity has no link, and its candidates there."""

    side: Side
    candidates: tuple[Candidate, ...]
    never_linked: bool = False  # a blank node, or a term of RDF's own vocabularies

    def told(self) -> str:
        """The result for the entity, without its name."""
        if self.never_linked:
            return "is never linked: it is a blank node or a term of RDF's own vocabularies."
        if not self.candidates:
            return "has no link. No entity of the other graph is a candidate."
        return "has no link. Its best candidates:"


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """The links of an entity with their evidence, or its candidates."""

    entity: str
    answers: tuple[Linked | Unlinked, ...]
    names: Pair[Names]
    relation_names: Pair[Names]
    measure: Measure = "score"  # of the alignment
    confidence_note: str = ""  # of the alignment, if a confidence or score is shown

    def supports(self, linked: Linked) -> list[Support[str]]:
        """The evidence for a link, with names."""
        return [
            Support.named(each, self.names, self.relation_names)
            for each in linked.evidence.supports
        ]

    def how(self, linked: Linked) -> str:
        """`a seed`, or the link's confidence or score, as `confidence 0.87`."""
        sure = linked.confidence
        return "a seed" if sure is None else f"{self.measure} {confidence(sure)}"

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

    def own_and_others(self, side: Side) -> tuple[Names, Names]:
        """The names of the entity's side, and those of the other side."""
        source, target = self.names
        return (source, target) if side == "source" else (target, source)

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
        source, target = self.names.source[linked.source], self.names.target[linked.target]
        count = linked.evidence.total
        header = ("source neighbor", "by", "target neighbor", "by", "linked")
        rows: list[tuple[str, ...]] = [
            (
                each.neighbors.source,
                steps(each.relations.source),
                each.neighbors.target,
                steps(each.relations.target),
                "seed" if each.by_seed else confidence(each.confidence),
            )
            for each in self.supports(linked)
        ]
        shown = f"pairs of linked neighbors: {count:,}"
        if count > len(rows):
            shown += f", {len(rows):,} shown"
        return f"{source} = {target} ({self.how(linked)}; {shown})", header, rows

    def _unlinked_table(self, unlinked: Unlinked) -> _Table:
        own, others = self.own_and_others(unlinked.side)
        rows: list[tuple[str, ...]] = [
            (
                others[each.entity],
                f"{each.score:.3f}",
                self.why(each, "" if each.rival is None else own[each.rival]),
            )
            for each in unlinked.candidates
        ]
        header = ("candidate", "similarity", "why it was not chosen") if rows else ()
        return f"{self.entity} ({unlinked.side}) {unlinked.told()}", header, rows


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
        entity: The name of the entity.
        limit: Most pairs of neighbors, or candidates.
    """
    task = benchmark.task
    answers: list[Linked | Unlinked] = []
    before_cut = None if chosen is None else cache(chosen)
    pairs: list[tuple[int, int, float | None]] = []
    for side, number in _found(benchmark, entity).items():
        own = _pairs(benchmark, given, side, number)
        pairs += [pair for pair in own if pair not in pairs]
        if not own:
            structural = task.structural.source if side == "source" else task.structural.target
            if number in structural:
                answers.append(Unlinked(side, (), never_linked=True))
                continue
            options = candidates_of(
                side, number, similarity(), task, found, given, before_cut, limit=limit
            )
            answers.append(Unlinked(side, options))
    if pairs:
        index = EvidenceIndex(task, given)
        answers += [
            Linked(source, target, confidence, index.evidence(source, target, limit=limit))
            for source, target, confidence in pairs
        ]
    note = given.confidence_note if any(map(_shows_confidence, answers)) else ""
    names, relation_names = benchmark.names, benchmark.relation_names
    return Explanation(entity, tuple(answers), names, relation_names, given.measure, note)


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


def _pairs(
    benchmark: Benchmark, alignment: Alignment, side: Side, number: int
) -> list[tuple[int, int, float | None]]:
    """The seeds and links of an entity; a seed has no confidence."""
    column = 0 if side == "source" else 1
    seeds = benchmark.task.seeds
    rows = (alignment.links[:, column] == number).nonzero().flatten()
    pairs: list[tuple[int, int, float | None]] = [
        (source, target, None) for source, target in seeds[seeds[:, column] == number].tolist()
    ]
    for row in rows.tolist():
        source, target = alignment.links[row].tolist()
        pairs.append((source, target, float(alignment.confidence[row])))
    return pairs


def _found(benchmark: Benchmark, name: str) -> dict[Side, int]:
    """The id of the entity with this name, for each side that has one."""
    sides: dict[Side, Names] = {"source": benchmark.names.source, "target": benchmark.names.target}
    numbers = {side: int(names.ids_of([name])[0]) for side, names in sides.items()}
    found = {side: number for side, number in numbers.items() if number >= 0}
    if found:
        return found
    similar = [_similar(names, name) for names in sides.values()]
    offered = [each for pair in zip_longest(*similar) for each in pair if each is not None]
    hint = f" Did you mean {', '.join(repr(each) for each in offered[:SIMILAR])}?"
    raise InputError(f"no entity of either graph is called {name!r}.{hint if offered else ''}")


def _similar(names: Names, part: str) -> list[str]:
    """Names that contain the text, the shortest first."""
    if not part.strip():
        return []
    matches = names.arrow.filter(pc.match_substring(names.arrow, part.strip(), ignore_case=True))
    lengths = pc.utf8_length(matches)
    nearest = pc.select_k_unstable(
        pa.table({"name": matches, "length": lengths}),
        SIMILAR,
        sort_keys=[("length", "ascending"), ("name", "ascending")],
    )
    return matches.take(nearest).to_pylist()  # type: ignore[no-any-return]
