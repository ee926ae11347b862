"""`clusterea match`: an alignment from a run's similarity."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from clusterea.cli.console import ERRORS, OUTPUT, show_warning
from clusterea.cli.locked import locks_run
from clusterea.cli.run_options import Device, MinConfidence, Run, Seed, Top
from clusterea.config import MatchingConfig
from clusterea.config.checks import check_bounds
from clusterea.pipeline import Artifacts, choose_device, give_stage, match_stage
from clusterea.pipeline.outputs import write_links
from clusterea.pipeline.stages import GIVEN
from clusterea.pipeline.stored import current_key, stored_similarity, stored_trial
from clusterea.workspace import Workspace


@locks_run
def match(
    run: Run,
    method: Annotated[
        str,
        typer.Option(metavar="NAME", help="one-to-one, greedy, mutual, best, stable or hungarian."),
    ] = "one-to-one",
    abstain: Annotated[
        bool,
        typer.Option(
            help="Leave out links that F1 is better without, where seeds were held out to tell."
        ),
    ] = True,
    least: MinConfidence = 0.0,
    top: Top = None,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Matches entities by the fused similarity; writes links, unmatched entities and candidates."""
    check_bounds(least, top)
    config = MatchingConfig(method=method, abstain=abstain, seed=seed)  # type: ignore[arg-type]  # it checks it
    place = choose_device(device)
    workspace = Workspace(run)
    benchmark = workspace.load_benchmark()
    task = benchmark.task
    similarity = stored_similarity(workspace, task)
    before = next((workspace.current(each) for each in (GIVEN, "match") if workspace.has(each)), "")
    fuse_key = current_key(workspace, "fuse", task)
    trial = stored_trial(workspace, task, fuse_key)
    artifacts = Artifacts(workspace, show_warning)
    key, alignment = match_stage(
        artifacts, fuse_key, task, lambda: similarity, config, place, trial
    )
    key, alignment = give_stage(artifacts, key, task, alignment, least, top)
    write_links(workspace, benchmark, similarity, alignment, seed=config.seed, device=place)
    source, target = alignment.unmatched.map(len)
    OUTPUT.print(f"{len(alignment.links):,} links; {source:,} and {target:,} entities unmatched:")
    OUTPUT.print(f"  {escape(str(workspace.folder / 'alignment.tsv'))}", soft_wrap=True)
    stale = [
        name for name in ("metrics.json", "report.html") if (workspace.folder / name).is_file()
    ]
    if alignment.confidence_note:
        OUTPUT.print(alignment.confidence_note, soft_wrap=True)
    if before not in ("", key) and stale:
        ERRORS.print(
            f"Of the links before: {' and '.join(stale)}. `clusterea report "
            f"{escape(str(workspace.folder))}` writes them anew.",
            soft_wrap=True,
        )
