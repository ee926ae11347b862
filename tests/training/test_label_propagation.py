"""Label propagation against a dense twin, in any numbering, and on a planted alignment."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from planted_pairs import hits_at_1, planted_pair, unrelated_pair
from torch import Tensor

from clusterea.config import PropagationConfig
from clusterea.data.synthetic import PairShape, generate
from clusterea.engines.packing import pack
from clusterea.errors import InputError
from clusterea.numerics.block_sizes import BLOCK_SIZES
from clusterea.seeding import generator
from clusterea.sharded import propagate, propagation
from clusterea.training import EncoderProgress
from clusterea.training import label_propagation as module
from clusterea.training.label_propagation import (
    LabelEdges,
    Sketch,
    projection_of,
    sketch_parts,
    sketched,
)
from clusterea.types import AlignmentTask, IntArray, KnowledgeGraph, Pair
from small_graphs import HAND, graph, heard, pairs, random_pair

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def quick(**changes: Any) -> PropagationConfig:
    return PropagationConfig(**{"dimension": 24, "features": 40, "rounds": 2, **changes})


def task_of(graphs: Pair[KnowledgeGraph], *seeds: tuple[int, int]) -> AlignmentTask:
    return AlignmentTask(graphs, np.array(seeds, dtype=np.int64).reshape(-1, 2))


@pytest.fixture(scope="module")
def planted() -> tuple[AlignmentTask, IntArray]:
    return planted_pair()


@pytest.fixture(scope="module")
def small() -> AlignmentTask:
    return unrelated_pair()


def assert_near(found: Pair[Tensor], wanted: Pair[Tensor], tolerance: float = 1e-5) -> None:
    for one, other in found.zip(wanted):
        torch.testing.assert_close(one, other, rtol=0, atol=tolerance)


def same_bytes(one: Pair[Tensor], other: Pair[Tensor]) -> bool:
    return torch.equal(one.source, other.source) and torch.equal(one.target, other.target)


# -- the twin ------------------------------------------------------------------------------------


def unit(rows: Tensor) -> Tensor:
    lengths = rows.norm(dim=1, keepdim=True)
    return torch.where(lengths > 0, rows / lengths, 0)


def dense_propagate(task: AlignmentTask, config: PropagationConfig) -> Pair[Tensor]:
    """The same with matrices of nodes × nodes and nodes × relations, in float64, node by node."""
    around = heard(task.graphs)  # for each node: neighbour → relations
    nodes = len(around)
    count = 2 * sum(side.num_relations for side in task.graphs)
    worth = [max(len(each), 1) ** -module.HUB_DAMPING for each in around]
    between = torch.zeros(nodes, nodes).double()
    on = torch.zeros(nodes, count).double()  # a relation is on an edge of the node
    across = torch.zeros(nodes, count).double()  # ... and this is the other end of that relation
    for node, neighbors in enumerate(around):
        for other, names in neighbors.items():
            between[node, other] = len(names) * worth[other]
            for name in names:
                on[node, name] = 1
                across[node, (name + count // 2) % count] = 1
    between += torch.diag(module.SELF_WEIGHT * between.sum(1))

    draw = generator(config.seed, "labels")
    shape = task.num_seeds, config.dimension
    labels = torch.randint(2, shape, generator=draw, dtype=torch.int8).double() * 2 - 1
    entities = torch.zeros(nodes, config.dimension).double()
    relations = torch.zeros(count, config.dimension).double()
    for (source, target), label in zip(task.seeds.tolist(), unit(labels), strict=True):
        entities[source] = entities[target + task.graphs.source.num_entities] = label
    of_entities, of_relations = [entities], []
    for _ in range(config.rounds):
        heard_by_all = between @ entities + across @ relations
        entities, relations = unit(heard_by_all), unit(on.T @ entities)
        of_entities.append(entities)
        of_relations.append(relations)
    neighbor = dense_sketch(of_entities, nodes, "neighbors", config)
    relation = dense_sketch(of_relations, count, "relations", config)
    draw = generator(config.seed, "projection", "itself")
    itself = torch.randint(2, (config.features,), generator=draw).double() * 2 - 1
    result = torch.zeros(nodes, config.features).double()
    for node, neighbors in enumerate(around):
        for other, names in neighbors.items():
            for name in names:
                result[node] += worth[other] * relation[name] * neighbor[other]
    result = unit(unit(result) + module.OWN_WEIGHT * itself * unit(neighbor)).float()
    return Pair(
        result[: task.graphs.source.num_entities], result[task.graphs.source.num_entities :]
    )


def dense_sketch(states: list[Tensor], count: int, what: str, config: PropagationConfig) -> Tensor:
    """All rounds side by side, of unit length where not zero, times one tall projection."""
    draw = generator(config.seed, "projection", what)
    size = config.dimension, config.features
    tall = [torch.randn(size, generator=draw).double() for _ in states]
    if not states:
        return torch.zeros(count, config.features).double()
    return unit(torch.cat(states, 1)) @ torch.cat(tall) / math.sqrt(config.dimension)


@st.composite
def tasks(draw: st.DrawFn) -> AlignmentTask:
    graphs = draw(pairs())
    sizes = graphs.map(lambda side: side.num_entities)
    sources, targets = (draw(st.permutations(range(size))) for size in sizes)
    known = list(zip(sources, targets, strict=False))
    return task_of(graphs, *known[: draw(st.integers(1, len(known)))])


SWITCHES: list[dict[str, Any]] = [
    {},
    {"rounds": 0},
    {"rounds": 1},
    {"rounds": 5},
    {"seed": 9},
    {"dimension": 300, "features": 7},  # more than spread at once
    {"features": 1},
]


class TestTwin:
    @settings(max_examples=60)
    @given(tasks(), st.integers(0, 3), st.integers(0, 5))
    def test_tiny_graphs(self, task: AlignmentTask, rounds: int, seed: int) -> None:
        config = quick(rounds=rounds, seed=seed)
        assert_near(propagate(task, config), dense_propagate(task, config), 1e-4)

    @pytest.mark.parametrize("changes", SWITCHES, ids=str)
    def test_every_setting(self, changes: dict[str, Any], small: AlignmentTask) -> None:
        for task in (small, task_of(HAND, (0, 0), (2, 3), (5, 1))):
            config = quick(**changes)
            assert_near(propagate(task, config), dense_propagate(task, config), 1e-4)

    @pytest.mark.parametrize("name", ["SELF_WEIGHT", "OWN_WEIGHT", "HUB_DAMPING"])
    @pytest.mark.parametrize("value", [0.0, 2.0])
    def test_every_weight(
        self, name: str, value: float, small: AlignmentTask, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, name, value)
        assert_near(propagate(small, quick()), dense_propagate(small, quick()), 1e-4)

    def test_loops_and_parallel_triples(self) -> None:
        """By hand: each triple counts as labels spread, and a loop makes one its own neighbour."""
        graphs = Pair(
            graph([(0, 0, 0), (0, 0, 1), (0, 1, 1), (2, 0, 1), (1, 1, 1)], 3, 2),
            graph([(0, 0, 1), (1, 0, 0), (1, 0, 1)], 2, 1),
        )
        task, config = task_of(graphs, (0, 0), (2, 1)), quick()
        assert_near(propagate(task, config), dense_propagate(task, config), 1e-4)
        once = Pair(graph([(0, 0, 0), (0, 0, 1), (2, 0, 1), (1, 1, 1)], 3, 2), graphs.target)
        fewer = propagate(task_of(once, (0, 0), (2, 1)), config)
        assert not torch.allclose(fewer.source[1], propagate(task, config).source[1], atol=1e-3)

    def test_a_graph_without_triples(self) -> None:
        empty = Pair(graph([], 3, 1), graph([], 2, 1))
        task = task_of(empty, (1, 0))
        found = propagate(task, quick())
        assert_near(found, dense_propagate(task, quick()))
        assert torch.equal(found.source[1], found.target[0])  # all that is known is their label


# -- what holds of any result --------------------------------------------------------------------


class TestResult:
    @settings(max_examples=40)
    @given(tasks(), st.integers(0, 3))
    def test_rows_are_of_unit_length_or_zeros(self, task: AlignmentTask, rounds: int) -> None:
        found = propagate(task, quick(rounds=rounds))
        for side, of_graph in found.zip(task.graphs):
            assert side.shape == (of_graph.num_entities, 40)
            assert side.dtype == torch.float32
            lengths = side.norm(dim=1)
            assert ((lengths == 0) | ((lengths - 1).abs() < 1e-5)).all()
        for source, target in task.seeds.tolist():
            assert found.source[source].any()
            assert found.target[target].any()

    def test_the_same_seed_gives_the_same_bytes(self, small: AlignmentTask) -> None:
        one = propagate(small, quick())
        torch.rand(3)  # the state of the process has no say
        assert same_bytes(one, propagate(small, quick()))
        other = propagate(small, quick(seed=1))
        assert not torch.allclose(one.source, other.source, atol=0.1)

    def test_the_global_random_state_is_left_alone(self, small: AlignmentTask) -> None:
        torch.manual_seed(3)
        before = torch.get_rng_state()
        propagate(small, quick())
        assert torch.equal(torch.get_rng_state(), before)

    @pytest.mark.parametrize("labels_at_once", [1, 7, 24, 1000])
    @pytest.mark.parametrize("edge_cells", [1, 200, 1 << 23])
    def test_blocks_change_nothing(
        self,
        small: AlignmentTask,
        labels_at_once: int,
        edge_cells: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        whole = propagate(small, quick())
        monkeypatch.setattr(propagation, "SLAB", labels_at_once)
        monkeypatch.setitem(BLOCK_SIZES, "labels", {"cpu": edge_cells})
        assert_near(propagate(small, quick()), whole, 1e-6)

    @pytest.mark.parametrize("columns", [8, 16, 32])
    def test_columns_at_a_time_do_not_change_a_byte(
        self, small: AlignmentTask, columns: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        config = quick(dimension=64, features=64)
        whole = propagate(small, config)
        monkeypatch.setattr("clusterea.training.label_propagation.AT_ONCE", columns)
        for one, other in propagate(small, config).zip(whole):
            assert torch.equal(one, other)

    def test_renumbered_entities_keep_their_rows(self, small: AlignmentTask) -> None:
        rng = np.random.default_rng(1)
        new = Pair(rng.permutation(30), rng.permutation(30))

        def moved(side: tuple[KnowledgeGraph, IntArray]) -> KnowledgeGraph:
            old, ids = side
            triples = old.triples.copy()
            triples[:, [0, 2]] = ids[triples[:, [0, 2]]]
            return KnowledgeGraph(rng.permutation(triples), old.num_entities, old.num_relations)

        seeds = np.stack([new.source[small.seeds[:, 0]], new.target[small.seeds[:, 1]]], 1)
        again = AlignmentTask(small.graphs.zip(new).map(moved), seeds)
        found = propagate(again, quick()).zip(new).map(lambda side: side[0][side[1]])
        assert_near(found, propagate(small, quick()))

    def test_two_views_of_one_graph_have_one_embedding(self) -> None:
        """Relations are not seeds, but labels make them alike: here every entity is one."""
        one = random_pair(3).source
        everyone = np.arange(30)
        found = propagate(AlignmentTask(Pair(one, one), np.stack([everyone, everyone], 1)), quick())
        assert_near(Pair(found.source, found.source), Pair(found.target, found.target))

    def test_arguments_stay_as_they_are(self, small: AlignmentTask) -> None:
        before = small.seeds.copy(), small.graphs.map(lambda side: side.triples.copy())
        propagate(small, quick())
        assert np.array_equal(small.seeds, before[0])
        assert np.array_equal(small.graphs.source.triples, before[1].source)


class TestReach:
    #: Entities 0 to 2 in a chain, 3 to 5 in another; the second has relations of its own.
    APART = graph([(0, 0, 1), (1, 0, 2), (3, 1, 4), (4, 1, 5)], 6, 2)
    LINE = graph([(0, 0, 1), (1, 0, 2)], 3, 1)

    def test_a_component_without_seeds_has_zeros(self) -> None:
        found = propagate(task_of(Pair(self.APART, self.LINE), (0, 0)), quick(rounds=5))
        assert found.source.any(1).tolist() == [True] * 3 + [False] * 3
        assert found.target.any(1).all()

    def test_unless_they_share_a_relation(self) -> None:
        shared = graph([(0, 0, 1), (1, 0, 2), (3, 0, 4), (4, 0, 5)], 6, 1)
        found = propagate(task_of(Pair(shared, self.LINE), (0, 0)), quick(rounds=5))
        assert found.source.any(1).all()

    def test_labels_go_one_step_a_round(self) -> None:
        """Each edge has a relation of its own: these are no short cuts."""
        chain = graph([(i, i, i + 1) for i in range(7)], 8, 7)
        for rounds in range(5):
            found = propagate(task_of(Pair(chain, self.LINE), (0, 0)), quick(rounds=rounds))
            assert found.source.any(1).tolist() == [i <= rounds for i in range(8)]


class TestOddTasks:
    def test_no_seeds(self) -> None:
        with pytest.raises(InputError, match=r"^label propagation needs seeds\. Got none\.$"):
            propagate(task_of(HAND), quick())

    def test_a_hub_of_very_many_neighbours(self) -> None:
        star = graph([(0, 0, i) for i in range(1, 3000)], 3000, 1)
        ids = np.arange(3000)
        found = propagate(AlignmentTask(Pair(star, star), np.stack([ids, ids], 1)), quick())
        torch.testing.assert_close(found.source.norm(dim=1), torch.ones(3000))


def test_bytes_of_the_graph() -> None:
    """At most 17 for each triple, in all: 6 an edge, 6 a relation of a node, 16 a node."""
    sizes = Pair(20_000, 17_000), Pair(200_000, 100_000), Pair(200, 150)
    graphs = generate(PairShape(*sizes, 0.6, Pair(0.8, 0.5)), 0).task.graphs
    edges = LabelEdges.of(graphs, torch.device("cpu"))
    held = sum(buffer.nbytes for buffer in pack(edges)[1])
    nodes, sets = edges.graph.num_nodes, edges.graph.set_offsets.nbytes
    sets += edges.graph.set_relations.nbytes + edges.holder_offsets.nbytes
    assert held == 6 * len(edges.graph.neighbors) + 6 * len(edges.holders) + 16 * nodes + sets + 8
    assert held <= 17 * sum(graph.num_triples for graph in graphs)


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_progress_counts_rounds_and_the_end(small: AlignmentTask, rounds: int) -> None:
    seen: list[EncoderProgress] = []
    propagate(small, quick(rounds=rounds), progress=seen.append)
    assert [(p.epoch, p.epochs, p.step, p.steps) for p in seen] == [
        (1, 1, step, rounds + 1) for step in range(1, rounds + 2)
    ]
    assert all(p.loss is None for p in seen)


class TestSketch:
    def sketches(self, states: list[Tensor], what: str, features: int) -> Tensor:
        config = PropagationConfig(dimension=states[0].shape[1], features=features)
        draw = generator(config.seed, "projection", what)
        sketch: Sketch | None = None
        for each in states:
            sketch = sketched(sketch, projection_of(draw, config), None, each)
        assert sketch is not None
        (rows,) = sketch_parts(sketch, features)
        return rows

    def drawn(self, seed: int, rounds: int) -> list[Tensor]:
        draw = torch.Generator().manual_seed(seed)
        return [unit(torch.randn(4, 6, generator=draw)) for _ in range(rounds)]

    def test_products_are_kept_in_the_mean(self) -> None:
        """Of relation ⊗ neighbour: (r · r′) (n · n′), by 200,000 sketches within 5 deviations."""
        relations, neighbors = self.drawn(0, 2), self.drawn(1, 3)
        features, dimension = 200_000, 6
        sketch = self.sketches(relations, "relations", features)
        sketch = sketch * self.sketches(neighbors, "neighbors", features)
        found = sketch @ sketch.T * dimension**2 / features
        wide_r, wide_n = (unit(torch.cat(each, 1)) for each in (relations, neighbors))
        wanted = (wide_r @ wide_r.T) * (wide_n @ wide_n.T)
        # One product has a deviation of at most 8^½, that of (g h)² for normal g and h.
        torch.testing.assert_close(found, wanted, rtol=0, atol=5 * (8 / features) ** 0.5)

    def test_rounds_without_labels_do_not_count(self) -> None:
        """A row of zeros in some rounds is as long as one that never was."""
        first, second = self.drawn(2, 2)
        second[0] = 0
        rows = self.sketches([first, second], "neighbors", 50_000)
        lengths = rows.square().mean(1) * 6
        torch.testing.assert_close(lengths, torch.ones(4), rtol=0, atol=0.05)

    def test_nothing_is_zeros(self) -> None:
        assert not self.sketches([torch.zeros(4, 6)], "neighbors", 10).any()

    def test_more_features_are_nearer_to_all_products(self, small: AlignmentTask) -> None:
        """Two seeds draw other sketches: the more features, the more alike are the cosines."""
        gaps = []
        for features in (50, 2500):
            config = quick(dimension=500, features=features)
            one, other = (propagate(small, replace(config, seed=seed)) for seed in (0, 1))
            gap = (one.source @ one.target.T) - (other.source @ other.target.T)
            gaps.append(float(gap.abs().mean()))
        assert gaps[1] < 0.4 * gaps[0]


class TestPlanted:
    CONFIG = PropagationConfig(dimension=256, features=1024)

    def test_the_counterpart_is_the_nearest(self, planted: tuple[AlignmentTask, IntArray]) -> None:
        task, links = planted
        embeddings = propagate(task, self.CONFIG)
        assert hits_at_1(embeddings, links) > 0.5  # chance: 1 in 210
        assert hits_at_1(embeddings, task.seeds) > 0.8

    def test_seeds_are_what_it_learns_from(self, planted: tuple[AlignmentTask, IntArray]) -> None:
        task, links = planted
        shuffled = np.stack([task.seeds[:, 0], np.roll(task.seeds[:, 1], 1)], 1)
        assert hits_at_1(propagate(task.with_seeds(shuffled), self.CONFIG), links) < 0.15


@gpu
@pytest.mark.gpu
class TestGpu:
    @pytest.mark.parametrize("rounds", [0, 1, 3])
    def test_agrees_with_the_cpu(self, small: AlignmentTask, rounds: int) -> None:
        """Up to half precision, in which labels are kept there."""
        config = quick(rounds=rounds, dimension=256, features=512)
        here, there = (propagate(small, config, device=device) for device in ("cpu", "cuda"))
        assert there.source.device.type == "cpu"
        assert there.source.dtype == torch.float16
        assert_near(there.map(Tensor.float), here, 1e-3)

    def test_learns_a_planted_alignment(self, planted: tuple[AlignmentTask, IntArray]) -> None:
        task, links = planted
        assert hits_at_1(propagate(task, TestPlanted.CONFIG, device="cuda"), links) > 0.5

    def test_a_hub_does_not_leave_half_precision(self) -> None:
        star = graph([(0, 0, i) for i in range(1, 200_000)], 200_000, 1)
        ids = np.arange(200_000)
        task = AlignmentTask(Pair(star, star), np.stack([ids, ids], 1))
        found = propagate(task, quick(), device="cuda")
        lengths = found.source.float().norm(dim=1)
        torch.testing.assert_close(lengths, torch.ones(200_000), rtol=0, atol=1e-3)
