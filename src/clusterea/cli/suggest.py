"""`clusterea suggest`: the pairs to ask a person about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from clusterea.cli.console import ERRORS, OUTPUT, show_result
from clusterea.cli.export import BROKEN_PIPE
from clusterea.cli.locked import reads_run
from clusterea.cli.run_options import Run
from clusterea.files import leads_to_stream

if TYPE_CHECKING:
    from clusterea.report.suggestions import Suggestions
    from clusterea.types import Alignment


@reads_run
def suggest(
    run: Run,
    count: Annotated[int, typer.Option(metavar="N", min=1, help="Most pairs to suggest.")] = 50,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.tsv",
            help="Write the pairs as TSV with an empty column `answer`, to be filled with `same` "
            "or `different`; - for standard output.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON instead of text and tables.")
    ] = False,
) -> None:
    """Lists the pairs whose answers by a person help most.

    These are unsure, and the matches of their neighbors depend on them. A quarter of the list is
    links drawn at random, which tell the precision. Pairs that were answered are not listed again.
    """
    from clusterea.pipeline import load_run
    from clusterea.review.answers import answers_of

    result = load_run(run, need="match")
    found = result.suggest(count, answers_of(run, result.named))
    if out is not None:
        try:
            found.write(out)
        except BrokenPipeError:  # the reader stopped early, such as `head`
            raise typer.Exit(BROKEN_PIPE) from None
    if as_json:
        if out is None or not leads_to_stream(out):
            show_result(_described(found, result.alignment))
        return
    if out is None:
        _print_table(found)
        return
    console = ERRORS if leads_to_stream(out) else OUTPUT  # a stream gets only the data
    console.print(f"{len(found):,} pairs:")
    console.print(f"  {escape(str(out))}", soft_wrap=True)


def _print_table(found: Suggestions) -> None:
    from clusterea.report.readable import shortened

    if not found:
        OUTPUT.print("No pair is left to ask about.")
        return
    table = Table(box=None, header_style="bold")
    for title in ("Source", "Target", found.measure.capitalize(), "Why it is asked"):
        table.add_column(title, overflow="fold")
    for row in found.rows(found.names.map(shortened)):
        table.add_row(*map(escape, row))
    OUTPUT.print(table)
    OUTPUT.print(found.confidence_note, soft_wrap=True)


def _described(found: Suggestions, alignment: Alignment) -> dict[str, Any]:
    """The pairs as `--json` prints them."""
    from clusterea.pipeline.outputs import described_confidence

    columns = found.columns()
    rows = zip(*columns.values(), strict=True)
    return {
        "questions": [dict(zip(columns, row, strict=True)) for row in rows],
        "random": found.num_random,
        "confidence": described_confidence(alignment),
    }
