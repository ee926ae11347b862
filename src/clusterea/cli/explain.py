"""`clusterea explain`: why an entity has its link, or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from clusterea.cli.console import OUTPUT, show_result
from clusterea.cli.locked import reads_run
from clusterea.cli.run_options import Run

if TYPE_CHECKING:
    from clusterea.report.evidence import Step
    from clusterea.report.explanation import Explanation, Linked, Unlinked
    from clusterea.report.unlinked import Side
    from clusterea.types import Alignment


@reads_run
def explain(
    run: Run,
    entity: Annotated[
        str,
        typer.Argument(metavar="ENTITY", help="The name or label of an entity of either graph."),
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
    source = explanation.shown("source", linked.source)
    target = explanation.shown("target", linked.target)
    OUTPUT.print(
        f"{escape(source)}  =  {escape(target)}   ({explanation.how(linked)})",
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
    entities = explanation.names.map(readable.shortened)
    relations = explanation.relation_names.map(readable.shortened)
    table = _table("Source neighbor", "by", "Target neighbor", "by", "Linked")
    for each, named in zip(found.supports, explanation.supports(linked), strict=True):
        table.add_row(
            escape(explanation.shown("source", each.neighbors.source, entities.source)),
            escape(steps(named.relations.source, relations.source, "\n")),
            escape(explanation.shown("target", each.neighbors.target, entities.target)),
            escape(steps(named.relations.target, relations.target, "\n")),
            "seed" if each.by_seed else readable.confidence(each.confidence),
        )
    OUTPUT.print(table)
    if found.total > len(found.supports):
        OUTPUT.print(f"and {found.total - len(found.supports):,} more.")


def _print_unlinked(explanation: Explanation, unlinked: Unlinked) -> None:
    from clusterea.report import readable
    from clusterea.report.explanation import other_side

    side, other = unlinked.side, other_side(unlinked.side)
    who = f"{escape(explanation.shown(side, unlinked.entity))} ({side})"
    OUTPUT.print(f"{who} {unlinked.told()}", soft_wrap=True)
    if not unlinked.candidates:
        return
    source, target = explanation.names.map(readable.shortened)
    short: dict[Side, Callable[[str], str]] = {"source": source, "target": target}
    table = _table("Candidate", "Similarity", "Why it was not chosen")
    for each in unlinked.candidates:
        rival = "" if each.rival is None else explanation.shown(side, each.rival, short[side])
        reason = explanation.why(each, rival)
        candidate = explanation.shown(other, each.entity, short[other])
        table.add_row(escape(candidate), f"{each.score:.3f}", escape(reason))
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
            unlinked.append(_described_lone(explanation, answer))
    return {
        "entity": explanation.entity,
        "links": links,
        "unmatched": unlinked,
        "confidence": described_confidence(given),
    }


def _described_lone(explanation: Explanation, unlinked: Unlinked) -> dict[str, Any]:
    from clusterea.report.explanation import other_side

    side, other = unlinked.side, other_side(unlinked.side)
    name, label = explanation.name, explanation.label
    return {
        "side": side,
        "entity": name(side, unlinked.entity),
        "label": label(side, unlinked.entity),
        "never_linked": unlinked.never_linked,
        "no_counterpart": unlinked.is_alone,
        "candidates": [
            {
                "entity": name(other, each.entity),
                "label": label(other, each.entity),
                "similarity": each.score,
                "reason": each.reason,
                "linked_to": None if each.rival is None else name(side, each.rival),
                "linked_to_label": None if each.rival is None else label(side, each.rival),
                f"linked_{explanation.measure}": each.confidence,
            }
            for each in unlinked.candidates
        ],
    }


def _described_link(explanation: Explanation, linked: Linked) -> dict[str, Any]:
    found = linked.evidence

    def steps(some: tuple[Step[str], ...]) -> list[dict[str, Any]]:
        return [{"relation": step.relation, "outward": step.outward} for step in some]

    label = explanation.label
    return {
        "source": explanation.names.source[linked.source],
        "source_label": label("source", linked.source),
        "target": explanation.names.target[linked.target],
        "target_label": label("target", linked.target),
        "is_seed": linked.confidence is None,
        explanation.measure: linked.confidence,
        "grounds": None if linked.grounds is None else list(linked.grounds),
        "neighbors": {"source": found.num_neighbors.source, "target": found.num_neighbors.target},
        "num_evidence": found.total,
        "evidence": [
            {
                "source": named.neighbors.source,
                "source_label": label("source", each.neighbors.source),
                "target": named.neighbors.target,
                "target_label": label("target", each.neighbors.target),
                "source_relations": steps(named.relations.source),
                "target_relations": steps(named.relations.target),
                "is_seed": each.by_seed,
                explanation.measure: each.confidence,
            }
            for each, named in zip(found.supports, explanation.supports(linked), strict=True)
        ],
    }


def _table(*titles: str) -> Table:
    table = Table(box=None, header_style="bold")
    for title in titles:
        table.add_column(title, overflow="fold")
    return table
