"""`clusterea generate`: makes a realistic pair of graphs with a known alignment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.markup import escape

from clusterea.cli.console import ERRORS, OUTPUT
from clusterea.errors import InputError, unknown_name

if TYPE_CHECKING:
    from clusterea.types import Pair

N = TypeVar("N", int, float)
_PANEL = "Shape (one number for both sides, or SOURCE,TARGET)"
_LABELS = "Labels (each of the shares implies --labels)"
# Those of `SHAPES` and `LabelShape` in `clusterea.data.synthetic`, which is slow to import.
SHAPE_NAMES = (
    "demo",
    *("ids15k-en-fr", "ids15k-en-de", "ids100k-en-fr", "ids100k-en-de"),
    *("dbp1m-en-fr", "dbp1m-en-de"),
)
DEFAULT_SHARES = {"missing": "0.1", "ambiguous": "0.05", "noise": "0.3"}


def generate(
    out: Annotated[Path, typer.Argument(help="The folder to write. It must be new or empty.")],
    like: Annotated[
        str, typer.Option(metavar="NAME", help=f"A named shape: {', '.join(SHAPE_NAMES)}.")
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
    labels: Annotated[
        bool,
        typer.Option("--labels", help="Write labels of the entities too.", rich_help_panel=_LABELS),
    ] = False,
    missing_labels: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Share of each side's entities that have no label.",
            show_default=DEFAULT_SHARES["missing"],
            rich_help_panel=_LABELS,
        ),
    ] = None,
    ambiguous_labels: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Share of entities that have the same label as another entity.",
            show_default=DEFAULT_SHARES["ambiguous"],
            rich_help_panel=_LABELS,
        ),
    ] = None,
    label_noise: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Share of each side's labels that are changed: a typo, other word order, a word "
            "dropped, or a qualifier such as (band) added.",
            show_default=DEFAULT_SHARES["noise"],
            rich_help_panel=_LABELS,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed: same seed, same files.")] = 0,
) -> None:
    """Generates two graphs with a known alignment, as an OpenEA folder.

    The graphs are incomplete copies of one hidden graph.
    """
    from clusterea.data.synthetic import SHAPES, LabelShape, check_free, write_openea
    from clusterea.data.synthetic import generate as generate_pair

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
    shares = {"missing": missing_labels, "ambiguous": ambiguous_labels, "noise": label_noise}
    given = {name: share for name, share in shares.items() if share is not None}
    label_shape = LabelShape(**given) if labels or given else None
    sizes = f"{shape.entities.source:,} and {shape.entities.target:,}"
    with ERRORS.status(f"Making {sizes} entities …"):
        try:
            benchmark = generate_pair(shape, seed, label_shape)
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
    if benchmark.labels is not None:
        from clusterea.report.readable import percent

        source_share, target_share = benchmark.labels.map(lambda texts: percent(texts.share))
        OUTPUT.print(f"  labels for {source_share} and {target_share} of entities")
    OUTPUT.print(f"Look at it: clusterea info {escape(str(out))} --seeds-share 0.3", soft_wrap=True)


def _numbers(option: str, text: str, kind: Callable[[str], N]) -> Pair[N]:
    """One number for both sides, or SOURCE,TARGET."""
    from clusterea.types import Pair

    try:
        values = [kind(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) not in (1, 2):
        raise InputError(
            f"{option} must be one number, or two as SOURCE,TARGET. Got {text!r} instead."
        )
    return Pair(values[0], values[-1])
