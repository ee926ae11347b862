"""`clusterea explain`: why an entity was matched as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from clusterea.cli.console import OUTPUT
from clusterea.cli.run_options import Run
from clusterea.errors import InputError
from clusterea.workspace import Workspace

if TYPE_CHECKING:
    from clusterea.report.evidence import Step
    from clusterea.types import Benchmark, Names

SIMILAR = 5  # names offered where one is not known


def explain(
    run: Run,
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="Its name, on either side.")],
    limit: Annotated[int, typer.Option(metavar="N", help="Pairs of neighbours at most.")] = 12,
) -> None:
    """Says what an entity was matched to, and which matched neighbours speak for it."""
    import torch

    from clusterea.pipeline.stored import stored_alignment
    from clusterea.report.evidence import EvidenceIndex, Support

    workspace = Workspace(run)
    benchmark = workspace.load_benchmark()
    alignment = stored_alignment(workspace)
    side, number = _found(benchmark, entity)
    column = 0 if side == "source" else 1
    seeds = torch.from_numpy(benchmark.task.seeds.copy())
    seed = seeds[seeds[:, column] == number]
    rows = (alignment.links[:, column] == number).nonzero().flatten()
    pairs: list[tuple[list[int], float | None]] = [(pair, None) for pair in seed.tolist()]
    pairs += [(alignment.links[row].tolist(), float(alignment.confidence[row])) for row in rows]
    if not pairs:
        OUTPUT.print(f"{escape(entity)} ({side}) was matched to nothing.")
        return
    index = EvidenceIndex(benchmark.task, alignment)
    for (source, target), confidence in pairs:
        names = benchmark.names
        how = "a seed" if confidence is None else f"confidence {confidence:.2f}"
        OUTPUT.print(
            f"{escape(names.source[source])}  =  {escape(names.target[target])}   ({how})",
            soft_wrap=True,
        )
        found = index.evidence(source, target, limit=limit)
        if not found.supports:
            OUTPUT.print("No neighbours of the two are matched to each other.")
            continue
        table = Table(box=None, header_style="bold")
        for title in ("Source neighbour", "by", "Target neighbour", "by", "Matched"):
            table.add_column(title, overflow="fold")
        for support in found.supports:
            named = Support.named(support, names, benchmark.relation_names)
            sure = "seed" if named.by_seed else f"{named.confidence:.2f}"
            table.add_row(
                escape(named.neighbors.source),
                escape(_steps(named.relations.source)),
                escape(named.neighbors.target),
                escape(_steps(named.relations.target)),
                sure,
            )
        OUTPUT.print(table)
        if found.total > len(found.supports):
            OUTPUT.print(f"and {found.total - len(found.supports)} more.")


def _steps(steps: tuple[Step[str], ...]) -> str:
    return ", ".join(
        f"{step.relation} →" if step.outward else f"← {step.relation}" for step in steps
    )


def _found(benchmark: Benchmark, name: str) -> tuple[str, int]:
    """The side and the number of the entity with this name; the source's, where both have one."""
    for side, names in (("source", benchmark.names.source), ("target", benchmark.names.target)):
        number = int(names.ids_of([name])[0])
        if number >= 0:
            return side, number
    similar = [*_similar(benchmark.names.source, name), *_similar(benchmark.names.target, name)]
    hint = (
        f" Did you mean {', '.join(repr(each) for each in similar[:SIMILAR])}?" if similar else ""
    )
    raise InputError(f"no entity of either graph is called {name!r}.{hint}")


def _similar(names: Names, part: str) -> list[str]:
    """Names that contain the text."""
    import pyarrow.compute as pc

    matches = names.arrow.filter(pc.match_substring(names.arrow, part, ignore_case=True))
    return matches[:SIMILAR].to_pylist()  # type: ignore[no-any-return]
