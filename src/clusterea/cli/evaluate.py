"""`clusterea evaluate`: the metrics of a run, or of any alignment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clusterea.cli.console import OUTPUT, show_result, show_warning
from clusterea.cli.locked import locks_run, run_path
from clusterea.errors import InputError, address

if TYPE_CHECKING:
    from clusterea.types import Metrics


@locks_run
def evaluate(
    run: Annotated[
        Path | None,
        typer.Argument(
            parser=run_path, metavar="RUN", help="A run's folder or URI.", show_default=False
        ),
    ] = None,
    alignment: Annotated[
        Path | None,
        typer.Option(help="Instead of a run: a file of links.", show_default=False),
    ] = None,
    test_links: Annotated[
        Path | None,
        typer.Option(help="With --alignment: a file of test links.", show_default=False),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, as in metrics.json.")
    ] = False,
) -> None:
    """Evaluates a run, or any alignment, on test links.

    Precision: correct links / returned links. Recall: correct links / test links.
    """
    if (run is None) == (alignment is None):
        raise InputError("evaluate takes a RUN, or else --alignment FILE with --test-links FILE.")
    if run is not None:
        if test_links is not None:
            raise InputError("--test-links goes with --alignment; a run has its own.")
        found = _of_run(run).to_dict()
        if "matching" not in found:
            show_warning(
                "The run has a new similarity but no links of it; "
                f"run `clusterea match {address(run)}`."
            )
    elif alignment is not None and test_links is not None:
        from clusterea.cli.file_metrics import file_metrics

        found = file_metrics(alignment, test_links, quiet=as_json)
    else:
        raise InputError("--alignment needs --test-links FILE.")
    if as_json:
        show_result(found)
        return
    _print_metrics(found)


def _print_metrics(found: dict[str, Any]) -> None:
    from clusterea.report.readable import mean_reciprocal_rank, percent

    for candidates, title in (("test_candidates", "test targets"), ("all_candidates", "all")):
        for way in ("source_to_target", "target_to_source") if candidates in found else ():
            ranks = found[candidates][way]
            OUTPUT.print(
                f"{way.replace('_', ' ')}, among {title}: hits@1 {percent(ranks['hits@1'])}, "
                f"hits@10 {percent(ranks['hits@10'])}, MRR {mean_reciprocal_rank(ranks['mrr'])}",
                soft_wrap=True,
            )
    if "matching" in found:
        scores = found["matching"]
        OUTPUT.print(
            f"Precision {percent(scores['precision'])}, recall {percent(scores['recall'])}, "
            f"F1 {percent(scores['f1'])} on {found['test_links']:,} test links."
        )


def _of_run(run: Path) -> Metrics:
    """The metrics of a run's latest similarity and links; also writes metrics.json.

    There are no precision and recall if `match` has not used this similarity yet.
    """
    from clusterea.pipeline import load_run
    from clusterea.pipeline.outputs import write_metrics

    result = load_run(run, need="fuse")
    if not len(result.named.test_links):
        raise InputError(f"{address(run)} has no test links to judge by.")
    metrics = result.evaluate()
    if metrics.matching is not None:  # else the file is of the links that the folder has
        write_metrics(run, metrics)
    return metrics
