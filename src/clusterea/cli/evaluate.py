"""`clusterea evaluate`: how good a run, or anybody's alignment, is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from clusterea.cli.console import OUTPUT
from clusterea.errors import InputError
from clusterea.types import IntArray


def evaluate(
    run: Annotated[
        Path | None, typer.Argument(metavar="RUN", help="A run's folder.", show_default=False)
    ] = None,
    alignment: Annotated[
        Path | None,
        typer.Option(help="Instead of a run: links in any form that we read.", show_default=False),
    ] = None,
    test_links: Annotated[
        Path | None, typer.Option(help="With --alignment: the truth.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As in metrics.json.")] = False,
) -> None:
    """Judges a run by its test links, or any alignment by links that are given.

    Precision is correct links over all returned, recall correct links over all test links.
    """
    if (run is None) == (alignment is None):
        raise InputError("evaluate takes a RUN, or else --alignment FILE with --test-links FILE.")
    if run is not None:
        if test_links is not None:
            raise InputError("--test-links goes with --alignment; a run has its own.")
        found = _of_run(run)
    elif alignment is not None and test_links is not None:
        found = _of_files(alignment, test_links)
    else:
        raise InputError("--alignment needs --test-links FILE to be judged by.")
    if as_json:
        OUTPUT.print_json(json.dumps(found))
        return
    for candidates, title in (("test_candidates", "test targets"), ("all_candidates", "all")):
        for way in ("source_to_target", "target_to_source") if candidates in found else ():
            ranks = found[candidates][way]
            OUTPUT.print(
                f"{way.replace('_', ' ')}, among {title}: hits@1 {ranks['hits@1']:.1%}, "
                f"hits@10 {ranks['hits@10']:.1%}, MRR {ranks['mrr']:.3f}"
            )
    if "matching" in found:
        scores = found["matching"]
        OUTPUT.print(
            f"Precision {scores['precision']:.1%}, recall {scores['recall']:.1%}, "
            f"F1 {scores['f1']:.1%} on {found['test_links']:,} test links."
        )


def _of_run(folder: Path) -> dict[str, Any]:
    from clusterea.evaluation import evaluate as judged
    from clusterea.pipeline.stored import stored_alignment, stored_similarity
    from clusterea.workspace import Workspace, write_json

    workspace = Workspace(folder)
    benchmark = workspace.load_benchmark()
    if not len(benchmark.test_links):
        raise InputError(f"{folder} has no test links to judge by.")
    metrics = judged(
        stored_similarity(workspace),
        benchmark.test_links,
        benchmark.task.seeds,
        degrees=benchmark.task.graphs.source.degrees(),
        alignment=stored_alignment(workspace) if workspace.has("match") else None,
    ).to_dict()
    write_json(folder / "metrics.json", metrics)
    return metrics


def _of_files(alignment: Path, test_links: Path) -> dict[str, Any]:
    from clusterea.data.links import read_links
    from clusterea.evaluation import judge

    ids: dict[str, int] = {}

    def numbered(path: Path) -> IntArray:
        first = read_links(path).readings[0]
        sides = (first.source.to_pylist(), first.target.to_pylist())
        pairs = [
            (ids.setdefault(f"s{a}", len(ids)), ids.setdefault(f"t{b}", len(ids)))
            for a, b in zip(*sides, strict=True)
        ]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    truth, given = numbered(test_links), numbered(alignment)
    scores = judge(given, truth)
    return {"matching": scores.to_dict(), "links": len(given), "test_links": len(truth)}
