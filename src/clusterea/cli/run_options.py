"""Options that several commands on a run's folder share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Run = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="A run's folder, as `train` or `align` make one.",
        show_default=False,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Any setting of this stage."),
]
Seed = Annotated[
    int | None,
    typer.Option(metavar="N", help="Same seed, same result.", show_default="the run's"),
]
MinConfidence = Annotated[
    float, typer.Option("--min-confidence", metavar="X", help="Leave out less sure links.")
]
Top = Annotated[
    int | None, typer.Option(metavar="N", help="The N surest links at most.", show_default=False)
]
Device = Annotated[str, typer.Option(metavar="auto|cpu|cuda", help="Where to compute.")]
