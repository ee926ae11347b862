"""`clusterea explain`: why an entity was linked as it was, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile, zip_longest
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
import typer
from rich.markup import escape
from rich.table import Table

from clusterea.cli.console import OUTPUT, show_result
from clusterea.cli.run_options import Run
from clusterea.errors import InputError
from clusterea.workspace import Workspace

if TYPE_CHECKING:
    from clusterea.report.evidence import Evidence, Step, Support
    from clusterea.report.unlinked import Candidate, Side
    from clusterea.types import Alignment, Benchmark, Names

SIMILAR = 5  # names offered where one is not known


@dataclass(frozen=True, slots=True)
class _Linked:
    """A seed or a link of the entity, and its evidence."""

    source: int
    target: int
    confidence: float | None  # a seed has none
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class _Unlinked:
    """A side on which the entity has no link, and its candidates there."""

    side: Side
    candidates: tuple[Candidate, ...]


_Answers = list[_Linked | _Unlinked]


def explain(
    run: Run,
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="Its name, on either side.")],
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Pairs of neighbors, or candidates, at most.")
    ] = 12,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON instead of text and tables.")
    ] = False,
) -> None:
    """Shows the evidence for an entity's link, or why it has none.

    The evidence for a link are neighbors of its two entities that are linked to each other. For an
    entity without a link, its best candidates are shown, and why none was taken.
    """
    from clusterea.pipeline.stored import given_alignment

    workspace = Workspace(run)
    benchmark = workspace.load_benchmark()
    given = given_alignment(workspace, benchmark.task)
    answers = _answers(workspace, benchmark, given, _found(benchmark, entity), limit)
    if as_json:
        show_result(_described(benchmark, given, entity, answers))
        return
    for answer in answers:
        if isinstance(answer, _Linked):
            _print_linked(benchmark, answer)
        else:
            _print_unlinked(benchmark, entity, answer)
    if given.confidence_note and any(_shows_confidence(each) for each in answers):
        OUTPUT.print(given.confidence_note, soft_wrap=True)


def _answers(
    workspace: Workspace,
    benchmark: Benchmark,
    given: Alignment,
    found: dict[Side, int],
    limit: int,
) -> _Answers:
    """What there is to say of the entity, on each side that has it."""
    from clusterea.pipeline.stored import matched_similarity, stored_alignment
    from clusterea.report.evidence import EvidenceIndex
    from clusterea.report.unlinked import candidates_of

    task = benchmark.task
    answers: _Answers = []
    pairs: list[tuple[int, int, float | None]] = []
    for side, number in found.items():
        own = _pairs(benchmark, given, side, number)
        pairs += [pair for pair in own if pair not in pairs]
        if not own:
            whole = stored_alignment(workspace, task)
            similarity = matched_similarity(workspace, task)
            options = candidates_of(side, number, similarity, task, whole, given, limit=limit)
            answers.append(_Unlinked(side, options))
    if pairs:
        index = EvidenceIndex(task, given)
        answers += [
            _Linked(source, target, confidence, index.evidence(source, target, limit=limit))
            for source, target, confidence in pairs
        ]
    return answers


def _shows_confidence(answer: _Linked | _Unlinked) -> bool:
    if isinstance(answer, _Linked):
        return answer.confidence is not None
    return any(each.confidence is not None for each in answer.candidates)


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


def _print_linked(benchmark: Benchmark, linked: _Linked) -> None:
    names = benchmark.names
    how = "a seed" if linked.confidence is None else f"confidence {linked.confidence:.2f}"
    OUTPUT.print(
        f"{escape(names.source[linked.source])}  =  {escape(names.target[linked.target])}   "
        f"({how})",
        soft_wrap=True,
    )
    _print_evidence(benchmark, linked.evidence)


def _print_evidence(benchmark: Benchmark, found: Evidence) -> None:
    if not found.supports:
        OUTPUT.print("No neighbors of the two are linked to each other.")
        return
    entities = benchmark.names.map(_shortened)
    relations = benchmark.relation_names.map(_shortened)
    table = _table("Source neighbor", "by", "Target neighbor", "by", "Linked")
    for named in _named(benchmark, found):
        table.add_row(
            escape(entities.source(named.neighbors.source)),
            escape(_steps(named.relations.source, relations.source)),
            escape(entities.target(named.neighbors.target)),
            escape(_steps(named.relations.target, relations.target)),
            "seed" if named.by_seed else f"{named.confidence:.2f}",
        )
    OUTPUT.print(table)
    if found.total > len(found.supports):
        OUTPUT.print(f"and {found.total - len(found.supports):,} more.")


def _print_unlinked(benchmark: Benchmark, entity: str, unlinked: _Unlinked) -> None:
    opening = f"{escape(entity)} ({unlinked.side}) was matched to nothing."
    if not unlinked.candidates:
        OUTPUT.print(
            f"{opening} It has no candidates: no entity of the other graph was scored for it.",
            soft_wrap=True,
        )
        return
    OUTPUT.print(f"{opening} Its best candidates:", soft_wrap=True)
    own, others = _own_and_others(benchmark, unlinked.side)
    shorten, shorten_own = _shortened(others), _shortened(own)
    table = _table("Candidate", "Score", "Why it was not taken")
    for each in unlinked.candidates:
        rival = "" if each.rival is None else shorten_own(own[each.rival])
        table.add_row(
            escape(shorten(others[each.entity])), f"{each.score:.3f}", escape(_why(each, rival))
        )
    OUTPUT.print(table)


def _why(candidate: Candidate, rival: str) -> str:
    """Why a candidate was not taken, in a few words."""
    if candidate.reason == "seed":
        return f"a seed links it to {rival}"
    if candidate.reason == "linked":
        return f"linked to {rival}, confidence {candidate.confidence:.2f}"
    if candidate.reason == "left_out":
        return f"left out by --min-confidence or --top: confidence {candidate.confidence:.2f}"
    if candidate.reason == "unsure":
        return "too unsure: leaving the link out gives the better F1"
    return "has no link either, but the method of matching did not choose the pair"


def _described(
    benchmark: Benchmark, given: Alignment, entity: str, answers: _Answers
) -> dict[str, Any]:
    """What `--json` prints."""
    from clusterea.pipeline.outputs import described_confidence

    links, unlinked = [], []
    for answer in answers:
        if isinstance(answer, _Linked):
            links.append(_described_link(benchmark, answer))
        else:
            own, others = _own_and_others(benchmark, answer.side)
            candidates = [
                {
                    "entity": others[each.entity],
                    "score": each.score,
                    "reason": each.reason,
                    "linked_to": None if each.rival is None else own[each.rival],
                    "confidence": each.confidence,
                }
                for each in answer.candidates
            ]
            unlinked.append({"side": answer.side, "candidates": candidates})
    return {
        "entity": entity,
        "links": links,
        "unmatched": unlinked,
        "confidence": described_confidence(given),
    }


def _described_link(benchmark: Benchmark, linked: _Linked) -> dict[str, Any]:
    found = linked.evidence

    def steps(some: tuple[Step[str], ...]) -> list[dict[str, Any]]:
        return [{"relation": step.relation, "outward": step.outward} for step in some]

    return {
        "source": benchmark.names.source[linked.source],
        "target": benchmark.names.target[linked.target],
        "is_seed": linked.confidence is None,
        "confidence": linked.confidence,
        "neighbors": {"source": found.num_neighbors.source, "target": found.num_neighbors.target},
        "num_evidence": found.total,
        "evidence": [
            {
                "source": each.neighbors.source,
                "target": each.neighbors.target,
                "source_relations": steps(each.relations.source),
                "target_relations": steps(each.relations.target),
                "is_seed": each.by_seed,
                "confidence": each.confidence,
            }
            for each in _named(benchmark, found)
        ],
    }


def _named(benchmark: Benchmark, found: Evidence) -> list[Support[str]]:
    from clusterea.report.evidence import Support

    return [
        Support.named(each, benchmark.names, benchmark.relation_names) for each in found.supports
    ]


def _own_and_others(benchmark: Benchmark, side: Side) -> tuple[Names, Names]:
    source, target = benchmark.names
    return (source, target) if side == "source" else (target, source)


def _table(*titles: str) -> Table:
    table = Table(box=None, header_style="bold")
    for title in titles:
        table.add_column(title, overflow="fold")
    return table


def _shortened(names: Names) -> Callable[[str], str]:
    """Leaves out what all names of a graph begin with, as `http://dbpedia.org/resource/`."""
    import pyarrow.compute as pc

    ends = pc.min_max(names.arrow).as_py()  # what the first and the last share, all do
    same = takewhile(
        lambda two: two[0] == two[1], zip(ends["min"] or "", ends["max"] or "", strict=False)
    )
    shared = "".join(character for character, _ in same)
    cut = max(shared.rfind(mark) for mark in "/#") + 1
    return lambda name: name[cut:] or name


def _steps(steps: tuple[Step[str], ...], short: Callable[[str], str]) -> str:
    return "\n".join(
        f"{short(step.relation)} →" if step.outward else f"← {short(step.relation)}"
        for step in steps
    )


def _found(benchmark: Benchmark, name: str) -> dict[Side, int]:
    """Side and number of the entity with this name; of both, where both graphs have one."""
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
    import pyarrow.compute as pc

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
