"""`clusterea report`: writes the report page of a run again."""

from __future__ import annotations

from rich.markup import escape

from clusterea.cli.console import OUTPUT
from clusterea.cli.locked import locks_run
from clusterea.cli.run_options import Run
from clusterea.errors import address


@locks_run
def report(run: Run) -> None:
    """Writes report.html again, and metrics.json if there are test links."""
    from clusterea.pipeline import load_run
    from clusterea.pipeline.outputs import write_metrics, write_page

    result = load_run(run, need="match")
    metrics = result.evaluate() if len(result.named.test_links) else None
    write_metrics(run, metrics)
    path = run / "report.html"
    write_page(path, run.resolve().name, result, metrics)
    OUTPUT.print(f"  {escape(address(path))}", soft_wrap=True)
