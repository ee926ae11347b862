"""The graph convolution against one that multiplies dense matrices and computes every node."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from planted import CPU, planted, settings, unrelated
from torch import Tensor

from clusterea.config import SamplingConfig
from clusterea.graph.adjacency import weighted_adjacency
from clusterea.models.encoder import glorot
from clusterea.samplers import gcn
from clusterea.samplers.gcn import classify_nodes
from clusterea.seeding import generator
from clusterea.types import KnowledgeGraph
from small_graphs import graph

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
LINE = graph([(i, i % 2, i + 1) for i in range(9)], 10, 2)  # each node hears its two neighbours


def dense(side: KnowledgeGraph) -> Tensor:
    return weighted_adjacency(side).apply(torch.eye(side.num_entities, dtype=torch.float64))


def slow_scores(
    side: KnowledgeGraph, features: Tensor, known: Tensor, labels: Tensor, config: SamplingConfig
) -> Tensor:
    """A relu(Z W1 + b1) W2 + b2 of all nodes in every epoch, without dropout.

    Z is A X, standardized by the mean and deviation of the rows that the known nodes hear from.
    """
    draw = generator(config.seed, "gcn")
    units, classes = gcn.UNITS, config.num_batches
    first = glorot(features.shape[1], units, generator=draw).detach().double().requires_grad_()
    second = glorot(units, classes, generator=draw).detach().double().requires_grad_()
    biases = [torch.zeros(n, dtype=torch.float64, requires_grad=True) for n in (units, classes)]
    adjacency = dense(side)
    inputs = adjacency @ features.double()
    heard = inputs[(adjacency[known] != 0).any(0)]
    inputs = (inputs - heard.mean(0)) / heard.std(0, correction=0)

    def scores() -> Tensor:
        return adjacency @ torch.relu(inputs @ first + biases[0]) @ second + biases[1]

    optimizer = torch.optim.Adam([first, second, *biases], lr=gcn.RATE)
    for _ in range(config.gcn_epochs):
        optimizer.zero_grad()
        chances = scores()[known].log_softmax(1)
        loss = -torch.stack([chances[i, label] for i, label in enumerate(labels.tolist())]).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return scores().detach()


def slow_smoothing(
    side: KnowledgeGraph, own: Tensor, known: list[int], labels: list[int]
) -> Tensor:
    """Each node's chances, mixed with the weighted mean of those around it, round by round."""
    adjacency, nodes = dense(side), side.num_entities
    truth = dict(zip(known, torch.eye(own.shape[1], dtype=torch.float64)[labels], strict=True))
    chances = [truth.get(node, own[node]) for node in range(nodes)]
    for _ in range(gcn.SMOOTHING_ROUNDS):
        means = [
            sum((adjacency[v, u] * chances[u] for u in range(nodes)), start=torch.zeros(()))
            / adjacency[v].sum()
            for v in range(nodes)
        ]
        part = gcn.SMOOTHING
        chances = [truth.get(v, (1 - part) * own[v] + part * means[v]) for v in range(nodes)]
    return torch.stack(chances)


@pytest.fixture
def no_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gcn, "DROPOUT", 0.0)


@pytest.mark.usefixtures("no_dropout")
class TestAgainstTheDenseComputation:
    @pytest.mark.parametrize("epochs", [1, 7])
    @pytest.mark.parametrize("count", [5, 20])
    def test_the_network(self, count: int, epochs: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(gcn, "SMOOTHING_ROUNDS", 0)
        task, embeddings = unrelated(2)
        known = torch.from_numpy(task.seeds[:count, 1].copy())
        labels = torch.arange(count) % 4
        config = settings(gcn_epochs=epochs, seed=6)
        arguments = task.graphs.target, embeddings.target, known, labels, config
        result = classify_nodes(*arguments, CPU)
        assert result.shape == (60, 4)
        assert result.dtype == torch.float32
        assert not result.requires_grad
        wanted = slow_scores(*arguments).log_softmax(1)
        others = torch.ones(60, dtype=torch.bool).index_fill(0, known, False)
        torch.testing.assert_close(result[others].double(), wanted[others], rtol=1e-3, atol=1e-3)
        assert torch.equal(result[known].argmax(1), labels)

    @pytest.mark.parametrize("smoothing", [0.0, 0.6, 1.0])
    @pytest.mark.parametrize("rounds", [1, 4])
    def test_the_smoothing(
        self, smoothing: float, rounds: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gcn, "SMOOTHING", smoothing)
        monkeypatch.setattr(gcn, "SMOOTHING_ROUNDS", rounds)
        task, embeddings = unrelated(3, entities=20)
        known, labels = torch.tensor([3, 17, 9]), torch.tensor([2, 0, 2])
        config = settings(gcn_epochs=3)
        arguments = task.graphs.target, embeddings.target, known, labels, config
        own = slow_scores(*arguments).softmax(1)
        wanted = slow_smoothing(task.graphs.target, own, known.tolist(), labels.tolist())
        result = classify_nodes(*arguments, CPU).double().exp()
        torch.testing.assert_close(result, wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("known", [3, 40, 60])  # fewer and more than the parts of a product
def test_the_gradient_by_hand(known: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It learns what autograd does. On a CPU both draw the same hidden units to drop."""
    monkeypatch.setattr(gcn, "PARTS", 8)
    task, embeddings = unrelated()
    nodes = torch.arange(known)
    arguments = task.graphs.target, embeddings.target, nodes, nodes % 4, settings(gcn_epochs=20)
    wanted = classify_nodes(*arguments, CPU)
    monkeypatch.setattr(gcn, "_fit", gcn._fit_on_gpu)
    found = classify_nodes(*arguments, CPU)
    assert not found.requires_grad
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)


def test_the_gradient_by_hand_of_few_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    task, embeddings = unrelated()
    known = torch.arange(40)
    arguments = task.graphs.target, embeddings.target, known, known % 4, settings(gcn_epochs=20)
    wanted = classify_nodes(*arguments, CPU).exp()
    by_hand = gcn._fit_on_gpu

    def few_bits(parameters: Any, inner: Tensor, *rest: Any) -> None:
        by_hand(parameters, inner.bfloat16(), *rest)

    monkeypatch.setattr(gcn, "_fit", few_bits)
    found = classify_nodes(*arguments, CPU).exp()
    torch.testing.assert_close(found, wanted, rtol=0, atol=0.03)


@gpu
@pytest.mark.gpu
def test_a_gpu_agrees(no_dropout: None) -> None:
    task, embeddings = unrelated()
    known = torch.arange(40)
    config = settings(gcn_epochs=20)
    wanted = classify_nodes(
        task.graphs.target, embeddings.target, known, known % 4, config, CPU
    ).exp()
    cuda = torch.device("cuda")
    for features in (embeddings.target, embeddings.target.half().cuda()):
        found = classify_nodes(task.graphs.target, features, known, known % 4, config, cuda)
        torch.testing.assert_close(found.exp().cpu(), wanted, rtol=0, atol=0.03)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    task, embeddings = unrelated()
    known, labels = torch.arange(20), torch.arange(20) % 4
    arguments = task.graphs.target, embeddings.target, known, labels, settings(gcn_epochs=3), CPU
    whole = classify_nodes(*arguments)
    monkeypatch.setattr(gcn, "COLUMNS", 4)  # of 6
    torch.testing.assert_close(classify_nodes(*arguments), whole, rtol=1e-4, atol=1e-4)


def test_scores_of_float16_are_finite_where_a_column_hardly_varies() -> None:
    draw = torch.Generator().manual_seed(0)
    features = torch.randn(6, 3, generator=draw).half()
    features[:, 2] = torch.arange(6) * 2e-7
    adjacency = weighted_adjacency(graph([(i, 0, (i + 1) % 6) for i in range(6)], 6, 1))
    parameters = [
        torch.nn.Parameter(torch.randn(*size, generator=draw))
        for size in ((3, 16), (16, 4), (16,), (4,))
    ]
    _, mean, scale = gcn._inputs(adjacency, features)
    assert 0 < scale[2] < 1e-6
    assert gcn._scores(parameters, adjacency, features, mean, scale).isfinite().all()


@given(st.integers(0, 4), st.integers(1, 10))
def test_chances_sum_to_one(count: int, nodes: int) -> None:
    side = graph([(i, 0, i + 1) for i in range(nodes - 1)], nodes, 1)
    features = torch.randn(nodes, 3, generator=torch.Generator().manual_seed(nodes))
    known = torch.arange(min(count, nodes))
    config = settings(gcn_epochs=2)
    result = classify_nodes(side, features, known, known % 4, config, CPU)
    assert result.isfinite().all()
    if count:
        torch.testing.assert_close(result.exp().sum(1), torch.ones(nodes))
    else:
        assert not result.any()  # nothing known: no node is likelier anything


def test_a_known_node_that_hears_nobody() -> None:
    side = graph([(1, 0, 2), (2, 0, 3)], 5, 1)
    features = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    config = settings(gcn_epochs=5)
    result = classify_nodes(side, features, torch.tensor([0]), torch.tensor([2]), config, CPU)
    assert result.isfinite().all()
    assert int(result[0].argmax()) == 2


def test_it_learns_what_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark, embeddings, truth = planted()
    community = torch.from_numpy(truth.target)
    known = torch.from_numpy(benchmark.task.seeds[:, 1].copy())
    side = benchmark.task.graphs.target
    for rounds in (0, 5):
        monkeypatch.setattr(gcn, "SMOOTHING_ROUNDS", rounds)
        config = settings(gcn_epochs=150)
        scores = classify_nodes(side, embeddings.target, known, community[known], config, CPU)
        assert float((scores.argmax(1) == community).double().mean()) > 0.95
