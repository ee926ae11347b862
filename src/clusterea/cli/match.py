"""`clusterea match`: an alignment from a run's similarity."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from clusterea.cli.console import OUTPUT
from clusterea.cli.run_options import Device, Run, Seed
from clusterea.config import MatchingConfig
from clusterea.pipeline import Artifacts, choose_device, match_stage
from clusterea.pipeline.stored import stored_similarity
from clusterea.workspace import Workspace


def match(
    run: Run,
    method: Annotated[
        str,
        typer.Option(metavar="NAME", help="one-to-one, greedy, mutual, best, stable or hungarian."),
    ] = "one-to-one",
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Matches entities by the fused similarity and writes alignment.tsv anew."""
    from clusterea.export import write_alignment, write_unmatched

    config = MatchingConfig(method=method, seed=seed)  # type: ignore[arg-type]  # it checks it
    place = choose_device(device)
    workspace = Workspace(run)
    benchmark = workspace.load_benchmark()
    similarity = stored_similarity(workspace)
    _, alignment = match_stage(
        Artifacts(workspace),
        workspace.current("fuse"),
        benchmark.task,
        lambda: similarity,
        config,
        place,
    )
    write_alignment(workspace.folder / "alignment.tsv", alignment, benchmark.names)
    write_unmatched(workspace.folder, alignment, benchmark.names)
    source, target = alignment.unmatched.map(len)
    OUTPUT.print(f"{len(alignment.links):,} links; {source:,} and {target:,} entities unmatched:")
    OUTPUT.print(f"  {escape(str(workspace.folder / 'alignment.tsv'))}", soft_wrap=True)
