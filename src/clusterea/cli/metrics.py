"""`print_metrics`: how good an alignment is, as `align` and `evaluate` say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterea.cli.console import OUTPUT


def print_metrics(found: Mapping[str, Any]) -> None:
    """Prints what metrics.json holds, or as much of it as there is: ranks, precision and recall."""
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
