"""`collect`: the data of a report, from a benchmark and its alignment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clusterea.report.data import (
    RIGHT,
    UNKNOWN,
    WRONG,
    Drawn,
    GraphSize,
    Match,
    MiniBatches,
    ReportData,
)
from clusterea.report.evidence import EvidenceIndex, Support
from clusterea.report.readable import one_line
from clusterea.types import (
    Alignment,
    Benchmark,
    IntArray,
    Metrics,
    Names,
    Pair,
    Partition,
    StageCost,
    Texts,
)

SAMPLE = 2_000  # matches with evidence: about 3 MB of the page
SUPPORTS = 12  # pairs of neighbors shown for a match


def collect(
    benchmark: Benchmark,
    alignment: Alignment,
    metrics: Metrics | Mapping[str, Any] | None = None,
    *,
    title: str = "Alignment",
    stages: Sequence[StageCost] = (),
    partitions: Mapping[str, Partition] | None = None,
    overlaps: Mapping[str, Mapping[str, float]] | None = None,
    rounds: Sequence[Mapping[str, float | int | str]] = (),
    config: Mapping[str, Any] | None = None,
    versions: Mapping[str, str] | None = None,
    sample: int = SAMPLE,
    supports: int = SUPPORTS,
    seed: int = 0,
) -> ReportData:
    """The data for `write_report`: all links, with evidence for a sample of them.

    Test links only decide which links are shown as right or wrong.

    Args:
        benchmark: The graphs, their names and the test links.
        alignment: The links found, without the seeds.
        metrics: From `evaluate` or metrics.json.
        title: The title of the page.
        stages: The cost of each stage.
        partitions: By sampler.
        overlaps: By sampler: kind of links and overlap.
        rounds: Rounds of self-training: column and value.
        config: All settings of the run.
        versions: Versions of the software.
        sample: Most matches with evidence: a quarter the most confident, a quarter the least
            confident, and the rest at random.
        supports: Most pairs of neighbors for a match.
        seed: Random seed of the sample.
    """
    graphs = benchmark.task.graphs
    links: IntArray = alignment.links.cpu().numpy()
    confidence = alignment.confidence.double().cpu().numpy()
    correctness = judged(links, benchmark) if len(benchmark.test_links) else None
    matches = _matches(benchmark, alignment, correctness, draw(confidence, sample, seed), supports)
    labels, ends = benchmark.labels, Pair(*links.T)
    return ReportData(
        title=title,
        sizes=graphs.map(lambda g: GraphSize(g.num_entities, g.num_relations, g.num_triples)),
        num_seeds=len(benchmark.task.all_seeds),
        seeds_from=benchmark.seeds_from,
        names=benchmark.names.zip(ends).map(lambda side: side[0].arrow.take(pa.array(side[1]))),
        labels=labels and labels.zip(ends).map(lambda side: side[0].first(side[1])),
        confidence=confidence,
        measure=alignment.measure,
        confidence_note=alignment.confidence_note,
        unmatched=alignment.unmatched.map(lambda side: side.numel()),
        num_test_links=len(benchmark.test_links),
        correctness=correctness,
        metrics=metrics.to_dict() if isinstance(metrics, Metrics) else metrics,
        stages=tuple(stages),
        mini_batches=_mini_batches(partitions or {}, overlaps or {}),
        matches=matches,
        match_labels=_match_labels(benchmark, matches),
        rounds=tuple(rounds),
        config=config or {},
        versions=versions or {},
    )


def judged(links: IntArray, benchmark: Benchmark) -> NDArray[np.int8]:
    """(links,): RIGHT for a test link, WRONG for a contradicted link, UNKNOWN for others.

    A link is contradicted if a test link or a seed gives one of its entities another counterpart,
    or if one of its entities is known to be dangling.
    """
    from clusterea.evaluation.verdicts import verdicts  # with torch

    told, is_right = verdicts(links, np.concatenate([benchmark.task.seeds, benchmark.test_links]))
    if benchmark.dangling is not None:
        for ends, alone in zip(links.T, benchmark.dangling, strict=True):
            told = told | np.isin(ends, alone)
    return np.where(is_right, RIGHT, np.where(told, WRONG, UNKNOWN)).astype(np.int8)


def draw(confidence: NDArray[Any], sample: int, seed: int) -> list[tuple[int, Drawn]]:
    """The links that get evidence, and the reason, by descending confidence; all if few."""
    # Shuffled, so that ties do not depend on the order of the alignment.
    shuffled = np.random.default_rng(seed).permutation(len(confidence))
    falling = shuffled[np.argsort(-confidence[shuffled], kind="stable")]
    if len(falling) <= sample:
        return [(int(i), "all") for i in falling]
    ends = sample // 4
    top, middle, bottom = np.split(falling, [ends, len(falling) - ends])
    chosen = np.isin(middle, np.random.default_rng(seed).permutation(middle)[: sample - 2 * ends])
    kinds: list[tuple[IntArray, Drawn]] = [
        (top, "most"),
        (middle[chosen], "random"),
        (bottom, "least"),
    ]
    return [(int(i), kind) for some, kind in kinds for i in some]


def _matches(
    benchmark: Benchmark,
    alignment: Alignment,
    correctness: NDArray[np.int8] | None,
    drawn: Sequence[tuple[int, Drawn]],
    limit: int,
) -> tuple[Match, ...]:
    links: IntArray = alignment.links.cpu().numpy()
    shown = links[[link for link, _ in drawn]]
    index = EvidenceIndex(benchmark.task, alignment, shown)
    names, relation_names = benchmark.names, benchmark.relation_names
    tests = benchmark.test_links
    truths = dict(tests[np.isin(tests[:, 0], shown[:, 0])].tolist())

    def match(link: int, kind: Drawn) -> Match:
        source, target = links[link].tolist()
        found = index.evidence(source, target, limit=limit)
        verdict = UNKNOWN if correctness is None else int(correctness[link])
        truth = truths.get(source) if verdict == WRONG else None
        return Match(
            link=link,
            entities=Pair(names.source[source], names.target[target]),
            confidence=float(alignment.confidence[link]),
            right=None if verdict == UNKNOWN else verdict == RIGHT,
            truth=None if truth is None else names.target[truth],
            drawn=kind,
            num_neighbors=found.num_neighbors,
            num_supports=found.total,
            supports=tuple(Support.named(each, names, relation_names) for each in found.supports),
        )

    return tuple(match(link, kind) for link, kind in drawn)


def _match_labels(benchmark: Benchmark, matches: Sequence[Match]) -> Pair[Mapping[str, str]]:
    """The labels of the entities in the matches and in their evidence, by their names."""
    if benchmark.labels is None:
        return Pair({}, {})
    pairs = [pair for match in matches for pair in (match.entities, *_neighbors(match))]
    truths = [match.truth for match in matches if match.truth is not None]
    sources = dict.fromkeys(pair.source for pair in pairs)
    targets = dict.fromkeys([*(pair.target for pair in pairs), *truths])

    def labels(names: Names, texts: Texts, shown: Iterable[str]) -> Mapping[str, str]:
        entities = list(shown)
        found = texts.first(names.ids_of(entities)).to_pylist()
        shown_labels = (one_line(label or "") for label in found)
        return {name: label for name, label in zip(entities, shown_labels, strict=True) if label}

    return Pair(
        labels(benchmark.names.source, benchmark.labels.source, sources),
        labels(benchmark.names.target, benchmark.labels.target, targets),
    )


def _neighbors(match: Match) -> Iterator[Pair[str]]:
    return (each.neighbors for each in match.supports)


def _mini_batches(
    partitions: Mapping[str, Partition], overlaps: Mapping[str, Mapping[str, float]]
) -> tuple[MiniBatches, ...]:
    return tuple(
        MiniBatches(sampler, partition.sizes().map(tuple), overlaps.get(sampler))
        for sampler, partition in partitions.items()
    )
