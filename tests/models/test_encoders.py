"""One contract for every encoder: what the trainer and inference rely on."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from clusterea.config import TrainingConfig
from clusterea.graph.expansion import Block, Expander, incidence
from clusterea.graph.union import UnionGraph, union
from clusterea.models import ENCODERS, Encoder, Shape
from clusterea.training.inference import embed
from clusterea.types import KnowledgeGraph, Pair
from small_graphs import HAND, random_pair

CPU = torch.device("cpu")
DIMENSION = 6


@pytest.fixture(params=ENCODERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def build(name: str, graph: UnionGraph, seed: int = 0) -> tuple[Encoder, Tensor]:
    """An encoder and its table, of numbers large enough for differences to show."""
    draw = torch.Generator().manual_seed(seed)
    config = TrainingConfig(model=name, dimension=DIMENSION)
    encoder = ENCODERS[name](Shape.of(graph, CPU), config, draw)
    rows = encoder.initial_rows(draw)
    return encoder.double(), 10 * rows.double()


def run(encoder: Encoder, rows: Tensor, graph: UnionGraph, blocks: list[Block]) -> Tensor:
    """The outputs of the nodes that the blocks, which run outwards, began with."""
    layers = blocks[: encoder.num_layers][::-1]
    around = blocks[-1] if encoder.reads_neighbors else None
    incident = incidence(graph, layers[0].nodes) if encoder.reads_relations else None
    states = [encoder.inputs(rows.index_select(0, blocks[-1].nodes), around, incident)]
    for index, block in enumerate(layers):
        after = encoder.layer(index, states[-1], block)
        assert len(after) == block.num_receivers
        states = [*(state.index_select(0, block.receivers) for state in states), after]
    return encoder.readout(states)


def expand(
    encoder: Encoder, graph: UnionGraph, nodes: list[int], fanout: int | None
) -> list[Block]:
    hops = encoder.num_layers + encoder.reads_neighbors
    draw = torch.Generator().manual_seed(9)
    return Expander(graph).expand(torch.tensor(nodes), hops, fanout, draw)


def embedded(name: str, graphs: Pair[KnowledgeGraph], order: list[int] | None = None) -> Tensor:
    """Embeddings of all nodes; `order` says which row of the table a node of `graphs` has."""
    graph = union(graphs)
    encoder, rows = build(name, graph)
    result = embed(encoder, rows if order is None else rows[order], graph, CPU, 7)
    assert result is not None
    return result


def test_registry() -> None:
    assert set(ENCODERS) == {"gcn-align", "rrea", "dual-amn"}


def test_table(name: str) -> None:
    encoder, _ = build(name, graph := union(random_pair(0)))
    rows = encoder.initial_rows(torch.Generator().manual_seed(1))
    same = encoder.initial_rows(torch.Generator().manual_seed(1))
    other = encoder.initial_rows(torch.Generator().manual_seed(2))
    assert rows.shape == (graph.num_nodes, DIMENSION)
    assert torch.equal(rows, same)
    assert not torch.equal(rows, other)
    assert len({tuple(row) for row in rows.tolist()}) == len(rows)  # no two entities begin alike


def test_the_seed_decides_the_parameters(name: str) -> None:
    graph = union(random_pair(0))
    one, same, other = (dict(build(name, graph, seed)[0].named_parameters()) for seed in (1, 1, 2))
    assert all(torch.equal(one[key], same[key]) for key in one)
    drawn = [key for key in one if one[key].any()]  # biases begin at zero
    assert all(not torch.equal(one[key], other[key]) for key in drawn)


@pytest.mark.parametrize("fanout", [None, 2, 3])
def test_outputs_and_gradients_on_drawn_blocks(name: str, fanout: int | None) -> None:
    graph = union(random_pair(0))
    encoder, rows = build(name, graph)
    rows.requires_grad_()
    nodes = [50, 4, 31]
    blocks = expand(encoder, graph, nodes, fanout)
    outputs = run(encoder, rows, graph, blocks)
    assert outputs.shape[0] == len(nodes)
    assert outputs.dim() == 2
    assert outputs.isfinite().all()
    outputs.square().sum().backward()  # type: ignore[no-untyped-call]
    assert rows.grad is not None
    touched = rows.grad.abs().sum(1) > 0
    assert touched[blocks[-1].nodes].any()
    assert not touched[~torch.isin(torch.arange(graph.num_nodes), blocks[-1].nodes)].any()
    for key, parameter in encoder.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.any(), key
        assert parameter.grad.isfinite().all(), key


def test_gradients_reach_every_row_and_every_slice(name: str) -> None:
    graph = union(random_pair(0))
    encoder, rows = build(name, graph)
    rows.requires_grad_()
    everyone = list(range(graph.num_nodes))
    outputs = run(encoder, rows, graph, expand(encoder, graph, everyone, None))
    draw = torch.Generator().manual_seed(1)
    weights = torch.randn(outputs.shape, dtype=torch.float64, generator=draw)
    (outputs * weights).sum().backward()  # type: ignore[no-untyped-call]
    assert rows.grad is not None
    assert rows.grad.any(1).all()
    for key, parameter in encoder.named_parameters():
        assert parameter.grad is not None, key
        # Each layer's attention, each channel's gate, each relation.
        assert parameter.grad.flatten(1).any(1).all(), key


def test_gradients_are_right(name: str) -> None:
    graph = union(HAND)
    encoder, rows = build(name, graph)
    blocks = expand(encoder, graph, [0, 2, 5, 7], None)
    key = next((key for key, _ in encoder.named_parameters()), None)
    parameters = dict(encoder.named_parameters())
    inputs = [rows.requires_grad_()]
    if key is not None:
        inputs.append(parameters[key])
    torch.manual_seed(0)
    # Sparse values are float32, so the slopes agree to about seven digits.
    assert torch.autograd.gradcheck(
        lambda *_: run(encoder, rows, graph, blocks), inputs, atol=1e-5, fast_mode=True
    )


def test_drawing_all_neighbors_is_drawing_none(name: str) -> None:
    graph = union(random_pair(3))
    encoder, rows = build(name, graph)
    largest = int(graph.offsets.diff().max())
    nodes = [0, 33, 12, 59]
    limited, free = (
        run(encoder, rows, graph, expand(encoder, graph, nodes, fanout))
        for fanout in (largest, None)
    )
    torch.testing.assert_close(limited, free)


def test_a_step_and_inference_agree(name: str) -> None:
    graph = union(random_pair(3))
    encoder, rows = build(name, graph)
    nodes = [0, 33, 12, 59]
    outputs = run(encoder, rows, graph, expand(encoder, graph, nodes, None))
    everyone = embed(encoder, rows, graph, CPU, 1 << 19)
    assert everyone is not None
    torch.testing.assert_close(everyone[nodes], torch.nn.functional.normalize(outputs, dim=1))


@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_triples_does_not_matter(name: str, seed: int) -> None:
    graphs = random_pair(4)
    rng = np.random.default_rng(seed)
    shuffled = graphs.map(
        lambda side: KnowledgeGraph(
            rng.permutation(side.triples), side.num_entities, side.num_relations
        )
    )
    torch.testing.assert_close(embedded(name, shuffled), embedded(name, graphs))


@pytest.mark.parametrize("side", ["source", "target"])
def test_renaming_entities_reorders_the_embeddings(name: str, side: str) -> None:
    graphs = random_pair(4)
    size = graphs.source.num_entities
    rename = np.random.default_rng(6).permutation(size)  # old id -> new id
    old = getattr(graphs, side)
    triples = old.triples.copy()
    triples[:, [0, 2]] = rename[triples[:, [0, 2]]]
    renamed = KnowledgeGraph(triples, old.num_entities, old.num_relations)
    former = np.argsort(rename)  # new id -> old id
    if side == "source":
        after = Pair(renamed, graphs.target)
        order = [*former, *range(size, size + graphs.target.num_entities)]
    else:
        after = Pair(graphs.source, renamed)
        order = [*range(size), *(former + size)]
    order = [int(node) for node in order]
    torch.testing.assert_close(embedded(name, after, order), embedded(name, graphs)[order])


def test_who_is_in_no_triple_gets_an_embedding(name: str) -> None:
    everyone = embedded(name, HAND)
    assert everyone.isfinite().all()
    torch.testing.assert_close(everyone.norm(dim=1), torch.ones(10, dtype=torch.float64))


def test_one_graph_knows_nothing_of_the_other_before_training(name: str) -> None:
    before = embedded(name, HAND)
    target = HAND.target
    fewer = KnowledgeGraph(target.triples[:-1], target.num_entities, target.num_relations)
    after = embedded(name, Pair(HAND.source, fewer))
    torch.testing.assert_close(before[:6], after[:6])
    assert not torch.allclose(before[6:], after[6:])
