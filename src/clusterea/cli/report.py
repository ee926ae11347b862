"""`clusterea report`: the page of a run, written anew."""

from __future__ import annotations

import json

from rich.markup import escape

from clusterea.cli.console import OUTPUT
from clusterea.cli.run_options import Run
from clusterea.pipeline.artifacts import unpack_partition
from clusterea.workspace import Workspace, read_tensors


def report(run: Run) -> None:
    """Writes report.html from what the run's folder holds."""
    from clusterea.pipeline.outputs import write_page
    from clusterea.pipeline.stored import stored_alignment
    from clusterea.samplers import SAMPLERS

    workspace = Workspace(run)
    benchmark = workspace.load_benchmark()
    alignment = stored_alignment(workspace)

    def read(name: str) -> dict[str, object]:
        path = workspace.folder / name
        return json.loads(path.read_text()) if path.is_file() else {}

    partitions = {
        sampler: unpack_partition(
            read_tensors(workspace.tensors_file(workspace.current(f"sample-{sampler}")))
        )
        for sampler in SAMPLERS
        if workspace.has(f"sample-{sampler}")
    }
    described = read("run.json")
    write_page(
        workspace,
        benchmark,
        alignment,
        read("metrics.json") or None,
        partitions,
        described.get("stages", []),  # type: ignore[arg-type]
        described.get("config", {}),  # type: ignore[arg-type]
    )
    OUTPUT.print(f"  {escape(str(workspace.folder / 'report.html'))}", soft_wrap=True)
