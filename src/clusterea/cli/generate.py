"""`clusterea generate`: makes a realistic pair of graphs with a known alignment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.markup import escape

from clusterea.cli.console import ERRORS, OUTPUT
from clusterea.data.synthetic import SHAPES, check_free, write_openea
from clusterea.data.synthetic import generate as generate_pair
from clusterea.errors import InputError, unknown_name
from clusterea.types import Pair

N = TypeVar("N", int, float)
_PANEL = "Shape (one number for both sides, or SOURCE,TARGET)"


def generate(
    out: Annotated[Path, typer.Argument(help="The folder to write. It must be new or empty.")],
    like: Annotated[
        str, typer.Option(metavar="NAME", help=f"A named shape: {', '.join(SHAPES)}.")
    ] = "demo",
    entities: Annotated[
        str | None,
        typer.Option(metavar="N[,M]", help="Number of entities.", rich_help_panel=_PANEL),
    ] = None,
    triples: Annotated[
        str | None, typer.Option(metavar="N[,M]", help="Number of triples.", rich_help_panel=_PANEL)
    ] = None,
    relations: Annotated[
        str | None,
        typer.Option(metavar="N[,M]", help="Number of relations.", rich_help_panel=_PANEL),
    ] = None,
    common_share: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Share of the smaller side's entities that have a counterpart.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    kept_share: Annotated[
        str | None,
        typer.Option(
            metavar="X[,Y]",
            help="Share of the hidden graph's edges that each side keeps. A lower share makes the "
            "two sides less alike.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed: same seed, same files.")] = 0,
) -> None:
    """Generates two graphs with a known alignment, as an OpenEA folder.

    The graphs are incomplete copies of one hidden graph.
    """
    if like not in SHAPES:
        raise unknown_name("shape", like, SHAPES)
    if seed < 0:
        raise InputError(f"--seed must be an int in [0, inf). Got {seed} instead.")
    check_free(out)
    shape = SHAPES[like]
    changes: dict[str, Any] = {}
    if entities is not None:
        wanted = _numbers("--entities", entities, int)
        # As dense as the named shape, unless --triples says otherwise.
        dense = wanted.zip(shape.entities.zip(shape.triples)).map(
            lambda side: round(side[1][1] * side[0] / side[1][0])
        )
        changes |= {"entities": wanted, "triples": dense}
    if triples is not None:
        changes["triples"] = _numbers("--triples", triples, int)
    if relations is not None:
        changes["relations"] = _numbers("--relations", relations, int)
    if common_share is not None:
        changes["common_share"] = common_share
    if kept_share is not None:
        changes["kept_share"] = _numbers("--kept-share", kept_share, float)
    shape = replace(shape, **changes)  # all at once: some changes are only valid together
    sizes = f"{shape.entities.source:,} and {shape.entities.target:,}"
    with ERRORS.status(f"Making {sizes} entities …"):
        try:
            benchmark = generate_pair(shape, seed)
        except MemoryError:
            raise InputError(f"{sizes} entities are more than this machine can hold.") from None
        write_openea(benchmark, out)
    source, target = benchmark.task.graphs
    OUTPUT.print(f"Wrote {escape(str(out))}", soft_wrap=True)
    OUTPUT.print(
        f"  {source.num_entities:,} and {target.num_entities:,} entities, "
        f"{source.num_triples:,} and {target.num_triples:,} triples, "
        f"{benchmark.task.num_seeds:,} links"
    )
    OUTPUT.print(f"Look at it: clusterea info {escape(str(out))} --seeds-share 0.3", soft_wrap=True)


def _numbers(option: str, text: str, kind: Callable[[str], N]) -> Pair[N]:
    """One number for both sides, or SOURCE,TARGET."""
    try:
        values = [kind(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) not in (1, 2):
        raise InputError(
            f"{option} must be one number, or two as SOURCE,TARGET. Got {text!r} instead."
        )
    return Pair(values[0], values[-1])
