"""The maths of each model, node by node, against loops written from the papers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from clusterea.config import Activation, TrainingConfig
from clusterea.graph.expansion import Block, Expander, incidence, whole_block
from clusterea.graph.union import UnionGraph, union
from clusterea.models import ENCODERS, Encoder, Shape
from clusterea.models.encoder import glorot, neighborhood_mean
from clusterea.types import KnowledgeGraph, Pair
from small_graphs import HAND, heard, random_pair, union_triples

CPU = torch.device("cpu")
DIMENSION = 4
Array = NDArray[np.float64]


def build(name: str, graph: UnionGraph, activation: Activation = "tanh") -> tuple[Encoder, Tensor]:
    draw = torch.Generator().manual_seed(3)
    config = TrainingConfig(model=name, dimension=DIMENSION, activation=activation)
    encoder = ENCODERS[name](Shape.of(graph, CPU), config, draw).double()
    rows = encoder.initial_rows(draw).double()
    with torch.no_grad():
        # As drawn, numbers are so small that tanh is straight and every softmax flat.
        for parameter in encoder.parameters():
            parameter.normal_(generator=draw)
    return encoder, 10 * rows


def on_full_graph(encoder: Encoder, rows: Tensor, graph: UnionGraph) -> list[Tensor]:
    """All states of all nodes, and last the output."""
    block = whole_block(graph, 0, graph.num_nodes)
    incident = incidence(graph, torch.arange(graph.num_nodes))
    states = [encoder.inputs(rows, block, incident)]
    for index in range(encoder.num_layers):
        states.append(encoder.layer(index, states[-1], block))
    return [*states, encoder.readout(states)]


def numbers(encoder: Encoder, name: str) -> Array:
    return np.asarray(dict(encoder.named_parameters())[name].detach().numpy())


def unit(vector: Array) -> Array:
    length = np.sqrt((vector**2).sum())
    return np.asarray(vector / length if length else vector)


def softmax(scores: list[float] | Array) -> Array:
    weights = np.exp(np.asarray(scores))
    return np.asarray(weights / weights.sum())


def relational_states(
    graphs: Pair[KnowledgeGraph],
    rows: Array,
    relations: Array,
    activation: Callable[[Array], Array],
    score: Callable[[int, int, Array, Array, Array], float],
) -> list[Array]:
    """(nodes, 2, dim) for each layer; `score` takes layer, channel, receiver, message, axis."""
    hears = heard(graphs)
    nodes = len(hears)
    first = np.zeros((nodes, 2, DIMENSION))
    for node, senders in enumerate(hears):
        around = [rows[node], *(rows[sender] for sender in senders)]
        first[node, 0] = np.mean(around, axis=0)
        incident = set().union(*senders.values())
        if incident:
            first[node, 1] = np.mean([relations[r] for r in incident], axis=0)
    states = [activation(first)]
    for layer in range(2):
        after = np.zeros_like(first)
        for node, senders in enumerate(hears):
            for channel in range(2):
                scores, messages = [], []
                for sender, carried in senders.items():
                    axis = unit(np.mean([relations[r] for r in carried], axis=0))
                    state = states[-1][sender, channel]
                    message = state - 2 * (state @ axis) * axis
                    receiver = states[-1][node, channel]
                    scores.append(score(layer, channel, receiver, message, axis))
                    messages.append(message)
                if messages:
                    after[node, channel] = softmax(scores) @ np.array(messages)
        states.append(activation(after))
    return states


def compare(states: list[Tensor], twins: list[Array]) -> None:
    assert len(states) == len(twins)
    # Not nearer, since means and weights of edges are stored in float32.
    for state, twin in zip(states, twins, strict=True):
        np.testing.assert_allclose(state.detach().numpy(), twin, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("graphs", [HAND, random_pair(8, entities=8, triples=30)])
def test_dual_amn(graphs: Pair[KnowledgeGraph]) -> None:
    graph = union(graphs)
    encoder, rows = build("dual-amn", graph)
    attention = numbers(encoder, "attention")  # (layers, dim, 2)
    twins = relational_states(
        graphs,
        rows.numpy(),
        numbers(encoder, "relations"),
        np.tanh,
        lambda layer, channel, _receiver, _message, axis: float(
            axis @ attention[layer, :, channel]
        ),
    )
    proxies = numbers(encoder, "proxies")
    weights, bias = numbers(encoder, "gate"), numbers(encoder, "gate_bias")
    outputs = []
    for node in range(graph.num_nodes):
        parts = []
        for channel in range(2):
            own = np.concatenate([state[node, channel] for state in twins])
            nearness = softmax(np.array([unit(own) @ unit(proxy) for proxy in proxies[channel]]))
            across = own - nearness @ proxies[channel]
            gate = 1 / (1 + np.exp(-(across @ weights[channel] + bias[channel, 0])))
            parts.append(gate * own + (1 - gate) * across)
        outputs.append(np.concatenate(parts))
    compare(on_full_graph(encoder, rows, graph), [*twins, np.array(outputs)])


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("graphs", [HAND, random_pair(8, entities=8, triples=30)])
def test_rrea(graphs: Pair[KnowledgeGraph], activation: Activation) -> None:
    graph = union(graphs)
    encoder, rows = build("rrea", graph, activation)
    by_message = numbers(encoder, "message_attention")[:, :, 0]  # (layers, dim)
    by_relation = numbers(encoder, "relation_attention")[:, :, 0]
    # The original's vector has a part for the receiver too, which must cancel.
    by_receiver = np.random.default_rng(0).normal(size=by_message.shape)
    vectors = np.concatenate([by_receiver, by_message, by_relation], axis=1)
    twins = relational_states(
        graphs,
        rows.numpy(),
        numbers(encoder, "relations"),
        np.tanh if activation == "tanh" else lambda values: np.maximum(values, 0),
        lambda layer, _channel, receiver, message, axis: float(
            vectors[layer] @ np.concatenate([receiver, message, axis])
        ),
    )
    outputs = [
        np.concatenate([state[node, channel] for channel in range(2) for state in twins])
        for node in range(graph.num_nodes)
    ]
    compare(on_full_graph(encoder, rows, graph), [*twins, np.array(outputs)])


@pytest.mark.parametrize("graphs", [HAND, random_pair(8, entities=8, triples=30)])
def test_gcn_align(graphs: Pair[KnowledgeGraph]) -> None:
    graph = union(graphs)
    encoder, rows = build("gcn-align", graph)
    triples = list(union_triples(graphs))
    adjacency = np.eye(graph.num_nodes)
    for head, relation, tail in triples:
        if head != tail:
            same = [(h, t) for h, r, t in triples if r == relation]
            adjacency[tail, head] += max(len({t for _, t in same}) / len(same), 0.3)
            adjacency[head, tail] += max(len({h for h, _ in same}) / len(same), 0.3)
    degrees = adjacency.sum(1)

    def convolved(states: Array) -> Array:
        result = np.zeros_like(states)
        for node in range(len(states)):
            for other in range(len(states)):
                weight = adjacency[node, other] / np.sqrt(degrees[node] * degrees[other])
                result[node] += weight * states[other]
        return result

    first = np.maximum(convolved(rows.numpy()), 0)
    second = convolved(first)
    compare(on_full_graph(encoder, rows, graph), [rows.numpy(), first, second, second])


class TestDrawnNeighbors:
    """A draw of the neighbours stands for all of them."""

    @pytest.fixture
    def graph(self) -> UnionGraph:
        return union(random_pair(1))

    def drawn(self, graph: UnionGraph, node: int, times: int) -> Block:
        """One block in which `node` draws two neighbours, many times."""
        draw = torch.Generator().manual_seed(0)
        return Expander(graph).hop(torch.full((times,), node), 2, draw)

    def test_weights_of_a_mean(self, graph: UnionGraph) -> None:
        everyone = torch.arange(graph.num_nodes)
        for fanout in (None, 2):
            block = Expander(graph).hop(everyone, fanout, torch.Generator().manual_seed(0))
            matrix = neighborhood_mean(block)
            ones = torch.ones(block.num_nodes, 1)
            torch.testing.assert_close(matrix @ ones, torch.ones(graph.num_nodes, 1))
            own = matrix.values[matrix.offsets[1:] - 1]  # the receiver comes last
            torch.testing.assert_close(own, 1 / (graph.offsets.diff() + 1.0))

    def test_a_draw_of_the_mean_is_right_on_average(self, graph: UnionGraph) -> None:
        node = int(graph.offsets.diff().argmax())
        rows = torch.randn(graph.num_nodes, 3, generator=torch.Generator().manual_seed(2))
        block = self.drawn(graph, node, 4000)
        average = (neighborhood_mean(block) @ rows[block.nodes]).mean(0)
        whole = neighborhood_mean(whole_block(graph, node, node + 1)) @ rows
        torch.testing.assert_close(average, whole[0], rtol=0, atol=0.05)
        once = (
            neighborhood_mean(self.drawn(graph, node, 1)) @ rows[self.drawn(graph, node, 1).nodes]
        )
        assert (once[0] - whole[0]).abs().max() > 0.05  # one draw is not as near

    def test_a_draw_of_a_convolution_is_right_on_average(self, graph: UnionGraph) -> None:
        node = int(graph.offsets.diff().argmax())
        encoder, _ = build("gcn-align", graph)
        rows = torch.randn(graph.num_nodes, 3, generator=torch.Generator().manual_seed(2))
        block = self.drawn(graph, node, 4000)
        average = encoder.layer(1, rows[block.nodes], block).mean(0)
        whole = encoder.layer(1, rows, whole_block(graph, node, node + 1))[0]
        torch.testing.assert_close(average, whole, rtol=0, atol=0.05)


class TestInitialNumbers:
    def test_glorot(self) -> None:
        values = glorot(3, 40, 20, generator=torch.Generator().manual_seed(0))
        bound = (6 / 60) ** 0.5
        assert values.requires_grad
        assert values.abs().max() <= bound
        assert values.abs().max() > 0.99 * bound
        assert values.mean().abs() < 0.05 * bound

    @pytest.mark.parametrize("name", ["rrea", "dual-amn"])
    def test_embeddings_lie_within_the_originals_bound(self, name: str) -> None:
        graph = union(random_pair(0))
        draw = torch.Generator().manual_seed(0)
        encoder = ENCODERS[name](Shape.of(graph, CPU), TrainingConfig(model=name), draw)
        for values in (encoder.initial_rows(draw), dict(encoder.named_parameters())["relations"]):
            assert 0.049 < values.abs().max() <= 0.05

    def test_gcn_align_has_glorots_deviation_of_each_graph(self) -> None:
        sides = random_pair(0, entities=300), random_pair(1, entities=60)
        graph = union(Pair(sides[0].source, sides[1].target))
        draw = torch.Generator().manual_seed(0)
        config = TrainingConfig(model="gcn-align", dimension=200)
        rows = ENCODERS["gcn-align"](Shape.of(graph, CPU), config, draw).initial_rows(draw)
        for part in (rows[:300], rows[300:]):
            wanted = (2 / (len(part) + 200)) ** 0.5
            assert float(part.std()) == pytest.approx(wanted, rel=0.02)


def test_outputs_have_the_papers_widths() -> None:
    graph = union(HAND)
    widths = {"dual-amn": (128, 768), "rrea": (100, 600), "gcn-align": (200, 200)}
    for name, (dimension, width) in widths.items():
        draw = torch.Generator().manual_seed(0)
        config = TrainingConfig(model=name, dimension=dimension)
        encoder = ENCODERS[name](Shape.of(graph, CPU), config, draw)
        assert on_full_graph(encoder, encoder.initial_rows(draw), graph)[-1].shape == (10, width)


def test_relational_models_ask_for_what_they_read() -> None:
    graph = union(HAND)
    encoder, rows = build("rrea", graph)
    with pytest.raises(ValueError, match="neighbors and incident must be given"):
        encoder.inputs(rows, None, None)
