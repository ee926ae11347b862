"""`clusterea export`: a run's alignment in a form that other tools read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from clusterea.cli.console import OUTPUT
from clusterea.cli.run_options import Run
from clusterea.errors import InputError
from clusterea.workspace import Workspace

ENDINGS = {
    "tsv": "tsv",
    "parquet": "parquet",
    "ntriples": "nt",
    "sssom": "sssom.tsv",
    "oaei": "rdf",
}


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
        typer.Option(help="The file; in the run's folder unless given.", show_default=False),
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
    write(alignment, benchmark.names, format_name, path)
    OUTPUT.print(f"{len(alignment.links):,} links:")
    OUTPUT.print(f"  {escape(str(path))}", soft_wrap=True)
