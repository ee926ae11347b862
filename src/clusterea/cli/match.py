"""`clusterea match`: an alignment from a run's similarity."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from clusterea.cli.align import print_result
from clusterea.cli.locked import locks_run
from clusterea.cli.run_options import Device, MinConfidence, Run, Seed, Top
from clusterea.config import MatchingConfig
from clusterea.config.checks import check_bounds


@locks_run
def match(
    run: Run,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Matching method: one-to-one, greedy, mutual, best, stable or hungarian.",
            show_default="the run's",
        ),
    ] = None,
    abstain: Annotated[
        bool | None,
        typer.Option(
            help="Drop links that are too unsure, where the preset holds out seeds.",
            show_default="the run's",
        ),
    ] = None,
    least: MinConfidence = 0.0,
    top: Top = None,
    seed: Seed = None,
    device: Device = "auto",
) -> None:
    """Matches entities by the fused similarity, and rewrites the files of the run.

    Same as `align` with the settings of the run, changed by these options. Only what is missing is
    computed.
    """
    from clusterea.cli.progress import watcher
    from clusterea.pipeline import choose_device, load_run, run_in_folder
    from clusterea.workspace import Workspace

    check_bounds(least, top)
    asked: dict[str, Any] = {"method": method, "abstain": abstain, "seed": seed}
    asked = {name: value for name, value in asked.items() if value is not None}
    MatchingConfig(**asked)  # refuse wrong values before reading the run
    torch_device = choose_device(device)
    before = load_run(run)
    config = replace(before.config, matching=replace(before.config.matching, **asked))
    # Another seed holds out other pairs, which the run before may have learned from.
    is_same_seed = config.matching.seed == before.config.matching.seed
    with watcher(quiet=False, json_lines=False) as observer:
        result, metrics = run_in_folder(
            Workspace(run),
            before.named,
            config,
            torch_device,
            observer,
            min_confidence=least,
            top=top,
            previous=before.previous if is_same_seed else None,
        )
    print_result(run, result.alignment, metrics)
