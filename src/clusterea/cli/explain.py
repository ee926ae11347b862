"""`clusterea explain`: why an entity was matched as it was."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile, zip_longest
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
import typer
from rich.markup import escape
from rich.table import Table

from clusterea.cli.console import OUTPUT
from clusterea.cli.run_options import Run
from clusterea.errors import InputError
from clusterea.workspace import Workspace

if TYPE_CHECKING:
    from clusterea.report.evidence import Evidence, Step
    from clusterea.types import Alignment, Benchmark, Names

SIMILAR = 5  # names offered where one is not known


def explain(
    run: Run,
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="Its name, on either side.")],
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Pairs of neighbours at most.")
    ] = 12,
) -> None:
    """Says what an entity was matched to, and which matched neighbours speak for it."""
    from clusterea.pipeline.stored import stored_alignment
    from clusterea.report.evidence import EvidenceIndex

    workspace = Workspace(run)
    benchmark = workspace.load_benchmark()
    alignment = stored_alignment(workspace, benchmark.task)
    found = _found(benchmark, entity)
    pairs: list[tuple[int, int, float | None]] = []
    for side, number in found.items():
        own = _pairs(benchmark, alignment, side, number)
        if not own:
            OUTPUT.print(f"{escape(entity)} ({side}) was matched to nothing.", soft_wrap=True)
        pairs += [pair for pair in own if pair not in pairs]
    if not pairs:
        return
    index = EvidenceIndex(benchmark.task, alignment)
    names = benchmark.names
    for source, target, confidence in pairs:
        how = "a seed" if confidence is None else f"confidence {confidence:.2f}"
        OUTPUT.print(
            f"{escape(names.source[source])}  =  {escape(names.target[target])}   ({how})",
            soft_wrap=True,
        )
        _print_evidence(benchmark, index.evidence(source, target, limit=limit))


def _pairs(
    benchmark: Benchmark, alignment: Alignment, side: str, number: int
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


def _print_evidence(benchmark: Benchmark, found: Evidence) -> None:
    from clusterea.report.evidence import Support

    if not found.supports:
        OUTPUT.print("No neighbours of the two are matched to each other.")
        return
    entities = benchmark.names.map(_shortened)
    relations = benchmark.relation_names.map(_shortened)
    table = Table(box=None, header_style="bold")
    for title in ("Source neighbour", "by", "Target neighbour", "by", "Matched"):
        table.add_column(title, overflow="fold")
    for support in found.supports:
        named = Support.named(support, benchmark.names, benchmark.relation_names)
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


def _found(benchmark: Benchmark, name: str) -> dict[str, int]:
    """Side and number of the entity with this name; of both, where both graphs have one."""
    sides = {"source": benchmark.names.source, "target": benchmark.names.target}
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
