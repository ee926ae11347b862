"""`clusterea info`: statistics of two graphs and their links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from clusterea.cli.console import OUTPUT, show_result
from clusterea.cli.data_options import DataOptions, takes_data

if TYPE_CHECKING:
    from clusterea.data.statistics import GraphStatistics, Statistics


@takes_data
def info(
    data: DataOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Shows statistics of two graphs: sizes, degrees, links, and what was left out."""
    from clusterea.data.statistics import describe

    statistics = describe(data.load(quiet=as_json))
    if as_json:
        show_result(statistics.to_dict())
        return
    OUTPUT.print(_graphs_table(statistics))
    OUTPUT.print(_links_line(statistics))
    dropped = [f"{count:,} {why}" for why, count in statistics.dropped.items()]
    OUTPUT.print(f"Left out: {'; '.join(dropped) or 'nothing'}.", soft_wrap=True)


def _graphs_table(statistics: Statistics) -> Table:
    from clusterea.data.statistics import QUANTILES

    table = Table(title=f"Read as {statistics.format}", title_justify="left")
    table.add_column("")
    table.add_column("source", justify="right")
    table.add_column("target", justify="right")

    def row(name: str, *values: str) -> None:
        table.add_row(name, *values)

    graphs = statistics.graphs
    row("entities", *graphs.map(lambda side: f"{side.entities:,}"))
    row("relations", *graphs.map(lambda side: f"{side.relations:,}"))
    row("triples", *graphs.map(lambda side: f"{side.triples:,}"))
    row("mean degree", *graphs.map(lambda side: f"{side.mean_degree:.1f}"))
    for share in QUANTILES:
        name = "largest degree" if share == 1 else f"degree, {share:.0%} quantile"
        row(name, *(f"{side.degree_quantiles[share]:,}" for side in graphs))
    if any(side.never_linked for side in graphs):
        row("never linked (blank nodes, RDF's own terms)", *graphs.map(_never_linked))
    row("entities without a link", *graphs.map(_without_link))
    return table


def _never_linked(side: GraphStatistics) -> str:
    return f"{side.never_linked:,}"


def _without_link(side: GraphStatistics) -> str:
    from clusterea.report.readable import percent

    return f"{side.without_link:,} ({percent(side.share_without_link)})"


def _links_line(statistics: Statistics) -> str:
    from clusterea.report.readable import seeds_origin

    links = statistics.seeds + statistics.test_links
    origin = seeds_origin(statistics.seeds_from)
    if statistics.seeds_from.get("names"):  # their entities may be in test links too
        return f"Seeds: {statistics.seeds:,}{origin}. Test links: {statistics.test_links:,}."
    if statistics.test_links:
        return (
            f"Links: {links:,}, of which {statistics.seeds:,} seeds{origin} "
            f"and {statistics.test_links:,} test links."
        )
    return f"Links: {links:,}, all of them seeds{origin}; no test links."
