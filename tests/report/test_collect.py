from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from demo_run import demo_run

from clusterea.report import EvidenceIndex, ReportData, Support
from clusterea.report.collect import draw, judged
from clusterea.report.data import RIGHT, UNKNOWN, WRONG
from clusterea.types import (
    Alignment,
    AlignmentTask,
    Benchmark,
    KnowledgeGraph,
    Metrics,
    Names,
    Pair,
    Ranking,
)


def test_few_links_are_all_drawn_by_falling_confidence() -> None:
    assert draw(np.array([0.2, 0.9, 0.5]), sample=3, seed=0) == [(1, "all"), (2, "all"), (0, "all")]


def test_of_many_links_the_ends_and_some_between_are_drawn() -> None:
    confidence = np.random.default_rng(1).permutation(1_000) / 1_000
    drawn = draw(confidence, sample=100, seed=0)
    assert Counter(kind for _, kind in drawn) == {"most": 25, "random": 50, "least": 25}
    by_kind = {
        kind: [confidence[link] for link, why in drawn if why == kind]
        for kind in ("most", "random", "least")
    }
    assert min(by_kind["most"]) == 0.975
    assert max(by_kind["least"]) == 0.024
    assert 0.35 < np.mean(by_kind["random"]) < 0.65
    assert len({link for link, _ in drawn}) == 100
    shown = [confidence[link] for link, _ in drawn]
    assert shown == sorted(shown, reverse=True)
    assert draw(confidence, sample=100, seed=0) == drawn
    assert draw(confidence, sample=100, seed=1) != drawn


def test_equally_sure_links_are_not_drawn_by_their_place() -> None:
    drawn = draw(np.ones(1_000), sample=8, seed=0)
    assert [link for link, _ in drawn[:2]] != [0, 1]


def small_benchmark(dangling: Pair[list[int]] | None = None) -> Benchmark:
    graph = KnowledgeGraph(np.empty((0, 3), dtype=np.int64), 6, 1)
    names, relations = Names("abcdef"), Names(["r"])
    return Benchmark(
        AlignmentTask(Pair(graph, graph), np.array([(0, 0)])),
        np.array([(1, 1), (2, 2)]),
        Pair(names, names),
        Pair(relations, relations),
        None if dangling is None else dangling.map(np.array),
    )


@pytest.mark.parametrize(
    ("link", "verdict"),
    [
        ((1, 1), RIGHT),
        ((1, 2), WRONG),
        ((1, 5), WRONG),  # 1 belongs to 1
        ((5, 2), WRONG),
        ((5, 0), WRONG),  # a seed gives 0 to 0
        ((4, 5), UNKNOWN),
    ],
)
def test_test_links_and_seeds_say_what_is_right(link: tuple[int, int], verdict: int) -> None:
    assert judged(np.array([link]), small_benchmark()).tolist() == [verdict]


def test_an_entity_known_to_have_no_counterpart_makes_a_link_wrong() -> None:
    links = np.array([(4, 5), (5, 4), (3, 3)])
    found = judged(links, small_benchmark(Pair([4], [4])))
    assert found.tolist() == [WRONG, WRONG, UNKNOWN]


def test_what_is_collected_is_what_there_is() -> None:
    run = demo_run()
    data = run.report(sample=200)
    links = run.alignment.links.tolist()
    assert data.num_links == len(links)
    assert len(data.matches) == 200
    assert data.num_test_links == len(run.benchmark.test_links)
    assert data.unmatched == run.alignment.unmatched.map(len)
    assert (data.measure, data.confidence_note) == ("confidence", run.alignment.confidence_note)
    assert [each.sampler for each in data.mini_batches] == ["cmcs", "iscs", "metis-cps"]
    assert sum(data.mini_batches[0].sizes.source) == data.sizes.source.entities
    assert data.mini_batches[2].overlap is None

    names = run.benchmark.names
    truths = dict(run.benchmark.test_links.tolist())
    index = EvidenceIndex(run.benchmark.task, run.alignment)
    for match in data.matches:
        source, target = (
            int(some.ids_of([name])[0]) for some, name in zip(names, match.entities, strict=True)
        )
        assert [source, target] in links
        assert match.right == (truths[source] == target)
        assert match.truth == (None if match.right else names.target[truths[source]])
        found = index.evidence(source, target, limit=12)
        assert match.num_supports == found.total
        assert len(match.supports) == min(found.total, 12)
        assert match.supports == tuple(
            Support.named(each, names, run.benchmark.relation_names) for each in found.supports
        )


def test_labels_of_links_and_of_their_evidence_are_collected() -> None:
    run = demo_run().labeled(lambda side, name: f" {side} {name[-6:]}\n")
    data = run.report(sample=200)
    assert data.labels is not None
    names, labels = run.benchmark.names, run.benchmark.labels
    assert labels is not None
    ends = Pair(*run.alignment.links.T.tolist())
    for column, (texts, entities) in data.labels.zip(labels.zip(ends)):
        found = column.to_pylist()
        assert found == [next(iter(texts.of(end)), None) for end in entities]
        assert None in found
    shown: Pair[set[str]] = Pair(set(), set())
    for match in data.matches:
        for pair in (match.entities, *(each.neighbors for each in match.supports)):
            shown.source.add(pair.source)
            shown.target.add(pair.target)
        shown.target.update([match.truth] if match.truth else [])
    for side, (those, of_name) in zip(("source", "target"), shown.zip(names), strict=True):
        assert getattr(data.match_labels, side) == {
            name: f"{side} {name[-6:]}" for name in those if int(of_name.ids_of([name])[0]) % 10
        }


def test_seeds_are_counted_with_the_presumed_ones() -> None:
    run = demo_run()
    task = run.benchmark.task
    few = task.with_seeds(task.seeds[:100], presumed=task.seeds[100:])
    origins = {"links": 100, "names": len(task.seeds) - 100}
    benchmark = replace(run.benchmark, task=few, seeds_from=origins)
    data = replace(run, benchmark=benchmark).report(sample=10)
    assert data.num_seeds == len(task.seeds)
    assert data.seeds_from == origins


def test_without_test_links_nothing_is_said_to_be_right() -> None:
    data: ReportData = demo_run(test_links=False).report()
    assert data.correctness is None
    assert data.metrics is None
    assert {match.right for match in data.matches} == {None}


def test_metrics_are_taken_as_they_are_or_as_read() -> None:
    ranking = Ranking({1: 0.5, 10: 0.75}, 0.6)
    metrics = Metrics(Pair(ranking, ranking), Pair(ranking, ranking), test_links=4, missing=0)
    run = demo_run()
    assert run.report(metrics=metrics).metrics == metrics.to_dict()
    assert run.report(metrics=metrics.to_dict()).metrics == metrics.to_dict()


def test_an_alignment_without_links_is_collected() -> None:
    run = demo_run()
    everyone = run.benchmark.task.graphs.map(lambda graph: torch.arange(graph.num_entities))
    nothing = Alignment(torch.empty((0, 2), dtype=torch.int64), torch.empty(0), everyone)
    data = type(run)(run.benchmark, nothing, {}).report()
    assert data.num_links == 0
    assert data.matches == ()
