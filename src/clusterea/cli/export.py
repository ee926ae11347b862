"""`clusterea export`: a run's alignment in a format of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from clusterea.cli.console import ERRORS, OUTPUT
from clusterea.cli.locked import reads_run
from clusterea.cli.run_options import MinConfidence, Run, Top
from clusterea.config.checks import check_bounds
from clusterea.errors import InputError, address
from clusterea.files import leads_to_stream

# Those of `clusterea.workspace.EXPORTED`, which is slow to import.
FORMAT_NAMES = ("tsv", "parquet", "ntriples", "sssom", "oaei")
BROKEN_PIPE = 128 + 13  # the exit code of a program that SIGPIPE ended


@reads_run
def export(
    run: Run,
    format_name: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="|".join(FORMAT_NAMES),
            help="The format to write.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file to write, or - for standard output.",
            show_default="a file in the run's folder",
        ),
    ] = None,
    least: MinConfidence = 0.0,
    top: Top = None,
    with_unmatched: Annotated[
        bool,
        typer.Option(
            "--with-unmatched", help="With sssom: add a row for each entity without a link."
        ),
    ] = False,
) -> None:
    """Writes the links as TSV, Parquet, owl:sameAs, SSSOM or an OAEI alignment."""
    from clusterea.export import export as write
    from clusterea.export import find_exporter
    from clusterea.pipeline import load_run
    from clusterea.workspace import EXPORTED

    find_exporter(format_name)
    check_bounds(least, top)
    if with_unmatched and format_name != "sssom":
        raise InputError(f"--with-unmatched needs --format sssom. Got --format {format_name}.")
    result = load_run(run, need="match")
    alignment = result.all_links.bounded(least, top)
    path = out or run / EXPORTED[format_name]
    try:
        write(
            alignment,
            result.named.names,
            format_name,
            path,
            labels=result.named.labels,
            with_unmatched=with_unmatched,
        )
    except BrokenPipeError:  # the reader stopped early, such as `head`
        raise typer.Exit(BROKEN_PIPE) from None
    console = ERRORS if leads_to_stream(path) else OUTPUT  # a stream gets only the data
    console.print(f"{len(alignment.links):,} links:")
    console.print(f"  {escape(address(path))}", soft_wrap=True)
