"""`clusterea evaluate`: the metrics of a run, or of any alignment."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from rich.markup import escape

from clusterea.cli.console import ERRORS, OUTPUT, show_result, show_warning
from clusterea.cli.locked import locks_run
from clusterea.errors import InputError
from clusterea.types import IntArray, Metrics, Pair

if TYPE_CHECKING:
    from clusterea.data.links import NamedLinks

    NamedPairs = Pair[pa.ChunkedArray]


@locks_run
def evaluate(
    run: Annotated[
        Path | None, typer.Argument(metavar="RUN", help="A run's folder.", show_default=False)
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
                f"The run has a new similarity but no links of it; run `clusterea match {run}`."
            )
    elif alignment is not None and test_links is not None:
        found = _of_files(alignment, test_links, quiet=as_json)
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
        raise InputError(f"{run} has no test links to judge by.")
    metrics = result.evaluate()
    write_metrics(run, metrics)
    return metrics


def _of_files(alignment: Path, test_links: Path, *, quiet: bool) -> dict[str, Any]:
    from clusterea.data.inputs import notes, reading, refuse_repeated
    from clusterea.data.links import read_links
    from clusterea.evaluation import judge

    refuse_repeated([alignment, test_links])
    with reading():
        given, truth = read_links(alignment), read_links(test_links)
        for told in () if quiet else notes():
            ERRORS.print(escape(told), soft_wrap=True)
    wanted = _read_as(truth, _names(given.readings))
    returned = _read_as(given, _names([wanted]))
    ids: dict[tuple[str, str], int] = {}

    def numbered(pairs: NamedPairs) -> IntArray:
        columns = [
            [ids.setdefault((side, name), len(ids)) for name in names.to_pylist()]
            for side, names in (("source", pairs.source), ("target", pairs.target))
        ]
        return np.array(columns, dtype=np.int64).T.reshape(-1, 2)

    scores = judge(numbered(returned), numbered(wanted))
    return {"matching": scores.to_dict(), "links": len(given), "test_links": len(truth)}


def _names(readings: Iterable[NamedPairs]) -> NamedPairs:
    """All names of each side, over all readings."""
    sources, targets = zip(*((each.source, each.target) for each in readings), strict=True)
    return Pair(sources, targets).map(
        lambda side: pa.chunked_array([chunk for names in side for chunk in names.chunks])
    )


def _read_as(links: NamedLinks, known: NamedPairs) -> NamedPairs:
    """Each link in the first reading whose two names are known, else in the first reading.

    owl:sameAs has no direction, and SSSOM may spell a name in several ways.
    """
    first = links.readings[0]
    chosen = Pair(first.source, first.target)
    is_open = pa.chunked_array([pa.array(np.ones(len(links), dtype=bool))])
    for reading in links.readings:
        holds = is_open
        for names, of_side in ((reading.source, known.source), (reading.target, known.target)):
            holds = pc.and_(holds, pc.is_in(names, value_set=of_side.combine_chunks()))
        chosen = Pair(
            pc.if_else(holds, reading.source, chosen.source),
            pc.if_else(holds, reading.target, chosen.target),
        )
        is_open = pc.and_not(is_open, holds)
    return chosen
