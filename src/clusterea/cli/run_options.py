"""Options that several commands on a run's folder share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clusterea.cli.locked import run_path

Run = Annotated[
    Path,
    typer.Argument(
        parser=run_path,
        metavar="RUN",
        help="The folder of a run, made by `align` or `train`, or its URI.",
        show_default=False,
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        parser=run_path,
        metavar="<path>",
        help="The run's folder, or a URI such as s3://bucket/run.",
        show_default=False,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Change a setting of this stage."),
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Random seed: same seed, same result.", show_default="the run's"
    ),
]
MinConfidence = Annotated[
    float,
    typer.Option(
        "--min-confidence",
        metavar="X",
        help="Leave out links with a lower confidence or, if it is not calibrated, score.",
    ),
]
Top = Annotated[
    int | None,
    typer.Option(metavar="N", help="Keep only the N best links.", show_default=False),
]
Device = Annotated[str, typer.Option(metavar="auto|cpu|cuda", help="Where to compute.")]
