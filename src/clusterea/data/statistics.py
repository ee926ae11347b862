"""Statistics of a pair of graphs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from clusterea.types import Benchmark, IntArray, KnowledgeGraph, Pair

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)


@dataclass(frozen=True, slots=True)
class GraphStatistics:
    """One side: its size, its degree distribution, and how much of it is linked."""

    entities: int
    relations: int
    triples: int
    mean_degree: float
    degree_quantiles: dict[float, int]  # share of entities → their largest degree
    never_linked: int  # blank nodes and RDF's own terms, which are only structure
    without_link: int  # of the others

    @property
    def share_without_link(self) -> float:
        return self.without_link / max(self.entities - self.never_linked, 1)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Both sides, the links between them, and what was left out when they were read."""

    graphs: Pair[GraphStatistics]
    seeds: int
    test_links: int
    dropped: dict[str, int]
    format: str
    seeds_from: dict[str, int]
    notes: tuple[str, ...] = ()  # how the files were read

    def to_dict(self) -> dict[str, Any]:
        out = asdict(self)
        for side, statistics in (("source", self.graphs.source), ("target", self.graphs.target)):
            out["graphs"][side]["share_without_link"] = statistics.share_without_link
        return out


def describe(benchmark: Benchmark) -> Statistics:
    """The numbers that `clusterea info` shows."""
    links = np.concatenate([benchmark.task.seeds, benchmark.test_links])
    linked = Pair(links[:, 0], links[:, 1])
    return Statistics(
        benchmark.task.graphs.zip(benchmark.task.structural.zip(linked)).map(
            lambda side: _describe_graph(side[0], *side[1])
        ),
        len(benchmark.task.all_seeds),
        len(benchmark.test_links),
        dict(benchmark.dropped),
        benchmark.format,
        dict(benchmark.seeds_from),
        benchmark.notes,
    )


def _describe_graph(
    graph: KnowledgeGraph, structural: IntArray, linked: IntArray
) -> GraphStatistics:
    degrees = graph.degrees()
    values = np.quantile(degrees, QUANTILES, method="inverted_cdf")
    return GraphStatistics(
        graph.num_entities,
        graph.num_relations,
        graph.num_triples,
        float(degrees.mean()),
        {share: int(value) for share, value in zip(QUANTILES, values, strict=True)},
        len(structural),
        graph.num_entities - len(structural) - len(linked),
    )
