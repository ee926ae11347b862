"""`clusterea export`: a run's alignment in a form that other tools read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from clusterea.cli.console import ERRORS, OUTPUT
from clusterea.cli.run_options import Run
from clusterea.errors import InputError
from clusterea.files import leads_to_stream
from clusterea.workspace import Workspace

ENDINGS = {
    "tsv": "tsv",
    "parquet": "parquet",
    "ntriples": "nt",
    "sssom": "sssom.tsv",
    "oaei": "rdf",
}
BROKEN_PIPE = 128 + 13  # as a shell reports a program that SIGPIPE ended


def export(
    run: Run,
    format_name: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="|".join(ENDINGS),
            help="sssom also says who is unmatched.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file, or - for standard output; in the run's folder unless given.",
            show_default=False,
        ),
    ] = None,
    least: Annotated[
        float, typer.Option("--min-confidence", metavar="X", help="Leave out less sure links.")
    ] = 0.0,
) -> None:
    """Writes the links as TSV, Parquet, owl:sameAs, SSSOM or an OAEI alignment."""
    from clusterea.export import export as write
    from clusterea.export import find_exporter
    from clusterea.pipeline.stored import stored_alignment

    find_exporter(format_name)
    if not 0 <= least <= 1:
        raise InputError(f"--min-confidence must be a number in [0, 1]. Got {least} instead.")
    workspace = Workspace(run)
    benchmark = workspace.load_benchmark()
    alignment = stored_alignment(workspace, benchmark.task).at_least(least)
    path = out or workspace.folder / f"exported.{ENDINGS[format_name]}"
    try:
        write(alignment, benchmark.names, format_name, path)
    except BrokenPipeError:  # who reads it has enough, as `head` has
        raise typer.Exit(BROKEN_PIPE) from None
    console = ERRORS if leads_to_stream(path) else OUTPUT  # the data alone go into a stream
    console.print(f"{len(alignment.links):,} links:")
    console.print(f"  {escape(str(path))}", soft_wrap=True)
