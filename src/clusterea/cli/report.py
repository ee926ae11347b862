"""`clusterea report`: the page of a run, written anew."""

from __future__ import annotations

from rich.markup import escape

from clusterea.cli.console import OUTPUT
from clusterea.cli.evaluate import of_run
from clusterea.cli.locked import locks_run
from clusterea.cli.run_options import Run
from clusterea.errors import DataError
from clusterea.workspace import Workspace


@locks_run
def report(run: Run) -> None:
    """Writes report.html, and metrics.json where there are test links, from what a run found."""
    from clusterea.pipeline.outputs import write_page
    from clusterea.pipeline.stored import (
        fused_partitions,
        given_alignment,
        is_matched,
        stored_description,
    )

    workspace = Workspace(run)
    benchmark = workspace.load_benchmark()
    alignment = given_alignment(workspace, benchmark.task)
    if not is_matched(workspace):
        raise DataError(
            run, "fused a similarity after its last links. Run `clusterea match` first."
        )
    metrics = of_run(workspace, benchmark) if len(benchmark.test_links) else None
    described = stored_description(workspace, "match")
    write_page(
        workspace,
        benchmark,
        alignment,
        None if metrics is None else metrics.to_dict(),
        fused_partitions(workspace, benchmark.task),
        described.get("stages", []),
        described.get("config", {}),
        described.get("self_training", []),
    )
    OUTPUT.print(f"  {escape(str(workspace.folder / 'report.html'))}", soft_wrap=True)
