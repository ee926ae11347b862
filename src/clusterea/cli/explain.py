"""`clusterea explain`: why an entity has its link, or none."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from clusterea.cli.console import OUTPUT, show_result
from clusterea.cli.run_options import Run

if TYPE_CHECKING:
    from clusterea.report.evidence import Step
    from clusterea.report.explanation import Explanation, Linked, Unlinked
    from clusterea.types import Alignment, Names


def explain(
    run: Run,
    entity: Annotated[
        str, typer.Argument(metavar="ENTITY", help="The name of an entity of either graph.")
    ],
    limit: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Most pairs of neighbors, or candidates, to show."),
    ] = 12,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON instead of text and tables.")
    ] = False,
) -> None:
    """Shows the evidence for an entity's link, or why it has none.

    The evidence for a link is the neighbors of its two entities that are linked to each other. An
    entity without a link is shown with its best candidates, and why each was not chosen.
    """
    from clusterea.pipeline import load_run
    from clusterea.report.explanation import Linked

    result = load_run(run, need="match")
    explanation = result.explain(entity, limit)
    if as_json:
        show_result(_described(explanation, result.alignment))
        return
    for answer in explanation.answers:
        if isinstance(answer, Linked):
            _print_linked(explanation, answer)
        else:
            _print_unlinked(explanation, answer)
    if explanation.confidence_note:
        OUTPUT.print(explanation.confidence_note, soft_wrap=True)


def _print_linked(explanation: Explanation, linked: Linked) -> None:
    names = explanation.names
    OUTPUT.print(
        f"{escape(names.source[linked.source])}  =  {escape(names.target[linked.target])}   "
        f"({explanation.how(linked)})",
        soft_wrap=True,
    )
    _print_evidence(explanation, linked)


def _print_evidence(explanation: Explanation, linked: Linked) -> None:
    from clusterea.report import readable
    from clusterea.report.explanation import steps

    found = linked.evidence
    if not found.supports:
        OUTPUT.print("No neighbors of the two are linked to each other.")
        return
    entities = explanation.names.map(_shortened)
    relations = explanation.relation_names.map(_shortened)
    table = _table("Source neighbor", "by", "Target neighbor", "by", "Linked")
    for named in explanation.supports(linked):
        table.add_row(
            escape(entities.source(named.neighbors.source)),
            escape(steps(named.relations.source, relations.source, "\n")),
            escape(entities.target(named.neighbors.target)),
            escape(steps(named.relations.target, relations.target, "\n")),
            "seed" if named.by_seed else readable.confidence(named.confidence),
        )
    OUTPUT.print(table)
    if found.total > len(found.supports):
        OUTPUT.print(f"and {found.total - len(found.supports):,} more.")


def _print_unlinked(explanation: Explanation, unlinked: Unlinked) -> None:
    who = f"{escape(explanation.entity)} ({unlinked.side})"
    OUTPUT.print(f"{who} {unlinked.told()}", soft_wrap=True)
    if not unlinked.candidates:
        return
    own, others = explanation.own_and_others(unlinked.side)
    shorten, shorten_own = _shortened(others), _shortened(own)
    table = _table("Candidate", "Similarity", "Why it was not chosen")
    for each in unlinked.candidates:
        rival = "" if each.rival is None else shorten_own(own[each.rival])
        reason = explanation.why(each, rival)
        table.add_row(escape(shorten(others[each.entity])), f"{each.score:.3f}", escape(reason))
    OUTPUT.print(table)


def _described(explanation: Explanation, given: Alignment) -> dict[str, Any]:
    """The explanation as `--json` prints it."""
    from clusterea.pipeline.outputs import described_confidence
    from clusterea.report.explanation import Linked

    links, unlinked = [], []
    for answer in explanation.answers:
        if isinstance(answer, Linked):
            links.append(_described_link(explanation, answer))
        else:
            own, others = explanation.own_and_others(answer.side)
            candidates = [
                {
                    "entity": others[each.entity],
                    "similarity": each.score,
                    "reason": each.reason,
                    "linked_to": None if each.rival is None else own[each.rival],
                    f"linked_{explanation.measure}": each.confidence,
                }
                for each in answer.candidates
            ]
            unlinked.append(
                {
                    "side": answer.side,
                    "never_linked": answer.never_linked,
                    "candidates": candidates,
                }
            )
    return {
        "entity": explanation.entity,
        "links": links,
        "unmatched": unlinked,
        "confidence": described_confidence(given),
    }


def _described_link(explanation: Explanation, linked: Linked) -> dict[str, Any]:
    found = linked.evidence

    def steps(some: tuple[Step[str], ...]) -> list[dict[str, Any]]:
        return [{"relation": step.relation, "outward": step.outward} for step in some]

    return {
        "source": explanation.names.source[linked.source],
        "target": explanation.names.target[linked.target],
        "is_seed": linked.confidence is None,
        explanation.measure: linked.confidence,
        "neighbors": {"source": found.num_neighbors.source, "target": found.num_neighbors.target},
        "num_evidence": found.total,
        "evidence": [
            {
                "source": each.neighbors.source,
                "target": each.neighbors.target,
                "source_relations": steps(each.relations.source),
                "target_relations": steps(each.relations.target),
                "is_seed": each.by_seed,
                explanation.measure: each.confidence,
            }
            for each in explanation.supports(linked)
        ],
    }


def _table(*titles: str) -> Table:
    table = Table(box=None, header_style="bold")
    for title in titles:
        table.add_column(title, overflow="fold")
    return table


def _shortened(names: Names) -> Callable[[str], str]:
    """A function that removes the common prefix of names, as `http://dbpedia.org/resource/`."""
    import pyarrow.compute as pc

    ends = pc.min_max(
        names.arrow
    ).as_py()  # a prefix of the first and the last name is a prefix of all
    same = takewhile(
        lambda two: two[0] == two[1], zip(ends["min"] or "", ends["max"] or "", strict=False)
    )
    shared = "".join(character for character, _ in same)
    cut = max(shared.rfind(mark) for mark in "/#") + 1
    return lambda name: name[cut:] or name
