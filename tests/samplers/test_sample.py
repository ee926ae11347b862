"""Bounded mini-batches: none is too large, nobody is lost, and what fits is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from planted import planted, settings, unrelated
from torch import Tensor

from clusterea.config import SamplingConfig
from clusterea.evaluation.overlap import overlap
from clusterea.samplers import SAMPLERS, Resources, Sampler, classifiers, recipe, sample
from clusterea.types import AlignmentTask, KnowledgeGraph, Pair, Partition
from small_graphs import graph, random_pair

every_sampler = pytest.mark.parametrize("name", SAMPLERS)


@pytest.fixture(autouse=True, scope="module")
def quick_classifier() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifiers, "LEAST_STEPS", 5)
        patch.setattr(classifiers, "EPOCHS", 2)
        yield


def members(partition: Partition) -> list[tuple[frozenset[int], frozenset[int]]]:
    """Who is in each mini-batch."""
    return [
        (frozenset(batch.source.tolist()), frozenset(batch.target.tolist()))
        for batch in partition.mini_batches()
    ]


def random_graph(seed: int, entities: int) -> KnowledgeGraph:
    if entities == 0:
        return graph([], 0, 1)
    return random_pair(seed, entities=entities, relations=2, triples=2 * entities).source


def check(partition: Partition, task: AlignmentTask, most: int) -> None:
    assert max(max(sizes) for sizes in partition.sizes()) <= most
    for labels, side in zip(partition.labels, task.graphs, strict=True):
        assert len(labels) == side.num_entities
        assert int(labels.min()) >= 0
        assert int(labels.max()) < partition.num_batches


@every_sampler
@pytest.mark.parametrize("most", [1, 7, 14, 29])
def test_no_side_of_a_mini_batch_is_too_large(name: str, most: int) -> None:
    task, embeddings = unrelated()
    config = settings(max_batch=most, gcn_epochs=3)
    partition = sample(name, task, embeddings, config)
    check(partition, task, most)
    assert partition.num_batches >= max(4, -(-60 // most))
    free = sample(name, task, embeddings, settings(gcn_epochs=3))
    empty, from_the_start = (
        sum(not any(batch) for batch in members(each)) for each in (partition, free)
    )
    assert empty == from_the_start  # splitting adds none
    assert torch.equal(
        partition.labels.target, sample(name, task, embeddings, config).labels.target
    )


@every_sampler
@pytest.mark.parametrize("most", [12, 16])
def test_what_fits_is_left_alone_and_what_does_not_is_split(name: str, most: int) -> None:
    task, embeddings = unrelated()
    free = members(sample(name, task, embeddings, settings()))
    bounded = members(sample(name, task, embeddings, settings(max_batch=most)))
    rest = iter(bounded)
    for batch in free:  # in their order
        if max(len(side) for side in batch) <= most:
            assert next(rest) == batch
            continue
        source, target = set(batch[0]), set(batch[1])
        while source or target:
            piece = next(rest)
            assert piece[0] <= source
            assert piece[1] <= target
            source -= piece[0]
            target -= piece[1]
    assert not list(rest)


@every_sampler
def test_mini_batches_are_rather_evened_than_split(name: str) -> None:
    task, embeddings = unrelated()  # 60 entities a side in 4 mini-batches: 15 on average
    partition = sample(name, task, embeddings, settings(max_batch=20))
    check(partition, task, 20)
    if name in ("cmcs", "iscs", "iscs-reverse"):
        assert partition.num_batches == 4


@every_sampler
def test_without_need_nothing_is_split(name: str) -> None:
    task, embeddings = unrelated()
    free = SAMPLERS[name](task, embeddings, settings(), Resources())
    for most in (None, 60, 10**9):
        bounded = sample(name, task, embeddings, settings(max_batch=most))
        assert bounded.num_batches == 4
        assert torch.equal(bounded.labels.source, free.labels.source)
        assert torch.equal(bounded.labels.target, free.labels.target)


@every_sampler
@pytest.mark.parametrize(("sizes", "most"), [((50, 3), 4), ((3, 50), 4), ((30, 0), 7)])
def test_uneven_sides(name: str, sizes: tuple[int, int], most: int) -> None:
    graphs = Pair(*(random_graph(number, size) for number, size in enumerate(sizes)))
    seeds = torch.stack([torch.arange(min(sizes))] * 2, 1).numpy()
    task = AlignmentTask(graphs, seeds)
    embeddings = graphs.map(lambda side: torch.randn(side.num_entities, 4))
    config = settings(max_batch=most, num_batches=2, gcn_epochs=3)
    partition = sample(name, task, embeddings, config)
    assert max(max(each) for each in partition.sizes()) <= most
    assert tuple(sum(each) for each in partition.sizes()) == sizes


def test_pieces_are_the_sampler_s_own() -> None:
    # Two mini-batches of four communities: the same rule finds the communities in each.
    benchmark, embeddings, _ = planted()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifiers, "LEAST_STEPS", 300)
        config = settings(num_batches=2, max_batch=60)
        partition = sample("cmcs", benchmark.task, embeddings, config)
    assert partition.num_batches >= 4
    assert overlap(partition, benchmark).test > 0.8  # by chance a quarter


def lump(
    task: AlignmentTask, embeddings: Pair[Tensor], config: SamplingConfig, resources: Resources
) -> Partition:
    """A sampler that never splits anything."""
    labels = task.graphs.map(lambda graph: torch.zeros(graph.num_entities, dtype=torch.int64))
    return Partition(labels, config.num_batches)


@hypothesis_settings(max_examples=30)
@given(st.integers(1, 61), st.integers(1, 5))
def test_a_sampler_that_does_not_split_is_helped_out(most: int, num_batches: int) -> None:
    task, embeddings = unrelated()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SAMPLERS, "lump", Sampler(lump))
        config = settings(max_batch=most, num_batches=num_batches)
        partition = sample("lump", task, embeddings, config)
    check(partition, task, most)
    # The other mini-batches were empty from the start; those of the split are not.
    assert partition.num_batches == num_batches - 1 + -(-60 // most)


@every_sampler
def test_a_recipe_has_the_settings_that_the_sampler_reads(name: str) -> None:
    found = set(recipe(name, SamplingConfig()))
    assert {"num_batches", "max_batch", "largest_share", "seed"} <= found
    assert {"classifier", "kmeans_starts"} <= found or name != "cmcs"
    assert ("classifier" in found) == (name == "cmcs")
    assert ("gcn_epochs" in found) == name.startswith("iscs")


def test_settings_that_samplers_name_exist() -> None:
    named = {field for each in SAMPLERS.values() for field in each.settings}
    assert named <= {field.name for field in fields(SamplingConfig)}
