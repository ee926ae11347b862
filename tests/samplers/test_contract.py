"""What every sampler owes, over the whole registry and over graphs of every shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from planted import named, planted, settings, unrelated
from torch import Tensor

from clusterea.errors import InputError
from clusterea.samplers import SAMPLERS, Resources, classifiers, find_sampler, reverse, sample
from clusterea.samplers.iscs import iscs
from clusterea.types import AlignmentTask, IntArray, KnowledgeGraph, Pair, Partition
from small_graphs import Triple, graph

every_sampler = pytest.mark.parametrize("name", SAMPLERS)


@pytest.fixture(autouse=True, scope="module")
def quick_classifier() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifiers, "LEAST_STEPS", 5)
        patch.setattr(classifiers, "EPOCHS", 2)
        yield


def same(one: Partition, other: Partition) -> bool:
    return (
        one.num_batches == other.num_batches
        and torch.equal(one.labels.source, other.labels.source)
        and torch.equal(one.labels.target, other.labels.target)
    )


def rows(graphs: Pair[KnowledgeGraph], seed: int) -> Pair[Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return graphs.map(lambda side: torch.randn(side.num_entities, 4, generator=draw))


def check(partition: Partition, task: AlignmentTask, num_batches: int) -> None:
    assert partition.num_batches == num_batches
    batches = list(partition.mini_batches())
    assert len(batches) == num_batches
    for side in ("source", "target"):
        entities = getattr(task.graphs, side).num_entities
        labels = getattr(partition.labels, side)
        assert labels.shape == (entities,)
        assert labels.dtype == torch.int64
        assert labels.device.type == "cpu"
        together = torch.cat([getattr(batch, side) for batch in batches])
        assert sorted(together.tolist()) == list(range(entities))


@st.composite
def shapes(draw: st.DrawFn) -> KnowledgeGraph:
    """Any graph, a star, a line, all joined to all, nobody joined at all; with lonely ones."""
    size, lonely = draw(st.integers(0, 9)), draw(st.integers(0, 3))
    kinds: dict[str, list[Triple]] = {
        "none": [],
        "star": [(0, 0, i) for i in range(1, size)],
        "line": [(i, i % 2, i + 1) for i in range(size - 1)],
        "clique": [(i, 1, j) for i in range(size) for j in range(size)],
    }
    kind = draw(st.sampled_from([*kinds, "any"]))
    if kind == "any" and size:
        entity = st.integers(0, size - 1)
        some = st.lists(st.tuples(entity, st.integers(0, 1), entity), max_size=20, unique=True)
        return graph(draw(some), size + lonely, 2)
    return graph(kinds.get(kind, []), size + lonely, 2)


@st.composite
def tasks(draw: st.DrawFn) -> tuple[AlignmentTask, int]:
    """A task, with seeds or without, and a number of mini-batches up to beyond its entities."""
    graphs = Pair(draw(shapes()), draw(shapes()))
    source, target = graphs.map(lambda side: side.num_entities)
    count = draw(st.integers(0, min(source, target)))
    seeds = np.stack(
        [np.array(draw(st.permutations(range(size)))[:count], int) for size in (source, target)], 1
    )
    return AlignmentTask(graphs, seeds), draw(st.integers(1, max(source, target) + 3))


NOBODY: IntArray = np.empty((0, 2), dtype=np.int64)
LONELY = graph([], 7, 1)
STAR = graph([(0, 0, i) for i in range(1, 8)], 8, 1)


@every_sampler
@hypothesis_settings(max_examples=25)
@given(tasks())
@example((AlignmentTask(Pair(LONELY, STAR), np.array([[6, 0], [0, 7]])), 3))
@example((AlignmentTask(Pair(STAR, STAR), NOBODY), 2))
@example((AlignmentTask(Pair(STAR, STAR), np.array([[0, 0]])), 7))
@example((AlignmentTask(Pair(STAR, LONELY), np.stack([np.arange(7), np.arange(7)], 1)), 1))
@example((AlignmentTask(Pair(STAR, graph([], 0, 1)), NOBODY), 3))
@example((AlignmentTask(Pair(graph([], 0, 0), graph([], 0, 0)), NOBODY), 2))
def test_every_entity_is_in_exactly_one_mini_batch(
    name: str, drawn: tuple[AlignmentTask, int]
) -> None:
    task, num_batches = drawn
    config = settings(num_batches=num_batches, gcn_epochs=3)
    embeddings = rows(task.graphs, 0)
    before = embeddings.map(torch.clone)
    partition = SAMPLERS[name](task, embeddings, config, Resources())
    check(partition, task, num_batches)
    assert all(torch.equal(*side) for side in embeddings.zip(before))  # nothing of ours is changed
    assert same(partition, SAMPLERS[name](task, embeddings, config, Resources()))


@every_sampler
def test_embeddings_may_be_half_precision(name: str) -> None:
    task, embeddings = unrelated()
    half = embeddings.map(Tensor.half)
    found = sample(name, task, half, settings())
    assert same(found, sample(name, task, half.map(Tensor.float), settings()))


@every_sampler
class TestRepeats:
    def test_and_leaves_that_state_alone(self, name: str) -> None:
        task, embeddings = unrelated()
        torch.manual_seed(3)
        before = torch.get_rng_state()
        sample(name, task, embeddings, settings())
        assert torch.equal(torch.get_rng_state(), before)

    def test_another_seed_gives_other_mini_batches(self, name: str) -> None:
        task, embeddings = unrelated(entities=300)  # METIS has one answer to a very small graph
        first, *others = (sample(name, task, embeddings, settings(seed=s)) for s in range(3))
        assert not all(same(first, other) for other in others)

    @pytest.mark.parametrize("seed", [2**31, 2**32, 2**63 - 1, 2**64])
    def test_any_seed(self, name: str, seed: int) -> None:
        task, embeddings = unrelated(entities=12)
        config = settings(seed=seed, num_batches=3)
        first = sample(name, task, embeddings, config)
        assert same(first, sample(name, task, embeddings, config))

    def test_test_links_have_no_say(self, name: str) -> None:
        benchmark, embeddings, _ = planted()
        task, links = benchmark.task, benchmark.test_links
        others = [
            named(task, np.stack([links[:, 0], np.roll(links[:, 1], 1)], 1)),
            named(task, links[::-1][: len(links) // 2]),
            named(task, NOBODY),
        ]
        config = settings(gcn_epochs=5)
        wanted = sample(name, benchmark.task, embeddings, config)
        for other in others:
            assert same(wanted, sample(name, other.task, embeddings, config))


class TestNames:
    def test_an_unknown_one_is_answered_with_the_known(self) -> None:
        with pytest.raises(InputError) as caught:
            find_sampler("isc")
        assert str(caught.value) == (
            "unknown sampler 'isc'; choose one of cmcs, iscs, iscs-reverse, vps, metis-cps, "
            "metis-cps-reverse. Did you mean 'iscs'?"
        )
        task, embeddings = unrelated(entities=9)
        with pytest.raises(InputError, match="unknown sampler 'cmc'.*Did you mean 'cmcs'"):
            sample("cmc", task, embeddings, settings())

    def test_a_known_one(self) -> None:
        assert find_sampler("iscs").sample is iscs


class TestReverse:
    @every_sampler
    def test_twice_is_the_same_sampler(self, name: str) -> None:
        sampler = SAMPLERS[name]
        assert reverse(reverse(sampler)) == sampler
        assert reverse(sampler) != sampler

    @pytest.mark.parametrize("name", ["iscs", "metis-cps"])
    def test_is_the_sampler_on_swapped_sides(self, name: str) -> None:
        task, embeddings = unrelated()
        forwards = SAMPLERS[name]
        backwards = SAMPLERS[f"{name}-reverse"]
        wanted = forwards(task.swap(), embeddings.swap(), settings(), Resources()).swap()
        assert same(backwards(task, embeddings, settings(), Resources()), wanted)
        assert not same(forwards(task, embeddings, settings(), Resources()), wanted)


class TestResources:
    @every_sampler
    def test_cuts_the_graph_that_a_sampler_names(self, name: str) -> None:
        task, embeddings = unrelated()
        asked: list[tuple[KnowledgeGraph, int, int]] = []

        def cut(graph: KnowledgeGraph, num_parts: int, seed: int) -> IntArray:
            asked.append((graph, num_parts, seed))
            return np.arange(graph.num_entities) % num_parts

        config = replace(settings(), seed=5)
        labels = sample(name, task, embeddings, config, Resources(cut=cut)).labels
        wanted = SAMPLERS[name].graph_to_cut(task.graphs)
        assert asked == ([] if wanted is None else [(wanted, 4, 5)])
        for side, found in task.graphs.zip(labels):
            if side is wanted:
                assert found.tolist() == [i % 4 for i in range(60)]
