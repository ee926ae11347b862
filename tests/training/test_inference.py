"""`embed`: every node, whatever the blocks."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clusterea.config import TrainingConfig
from clusterea.graph.union import UnionGraph, union
from clusterea.models import ENCODERS, Encoder, Shape
from clusterea.training.inference import embed
from clusterea.training.node_runs import node_runs
from small_graphs import HAND, random_pair

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def graph() -> UnionGraph:
    return union(random_pair(7))


def build(name: str, graph: UnionGraph, device: torch.device = CPU) -> tuple[Encoder, Tensor]:
    draw = torch.Generator().manual_seed(0)
    config = TrainingConfig(model=name, dimension=8)
    encoder = ENCODERS[name](Shape.of(graph, device), config, draw)
    return encoder.to(device), 10 * encoder.initial_rows(draw)


@pytest.mark.parametrize("name", ENCODERS)
class TestEveryEncoder:
    def test_blocks_change_nothing(self, name: str, graph: UnionGraph) -> None:
        encoder, rows = build(name, graph)
        whole = embed(encoder, rows, graph, CPU, 1 << 19)
        assert whole is not None
        for edges_per_block in (1, 2, 13, 100, graph.num_edges):
            parts = embed(encoder, rows, graph, CPU, edges_per_block)
            assert parts is not None
            torch.testing.assert_close(parts, whole)

    def test_rows_have_unit_length_and_no_gradient(self, name: str, graph: UnionGraph) -> None:
        encoder, rows = build(name, graph)
        everyone = embed(encoder, rows, graph, CPU, 50)
        assert everyone is not None
        assert len(everyone) == graph.num_nodes
        torch.testing.assert_close(everyone.norm(dim=1), torch.ones(graph.num_nodes))
        assert not everyone.requires_grad

    @pytest.mark.parametrize("edges_per_block", [9, 1 << 19])
    def test_one_bad_number_is_noticed(
        self, name: str, graph: UnionGraph, edges_per_block: int
    ) -> None:
        encoder, rows = build(name, graph)
        rows[17, 3] = torch.nan
        assert embed(encoder, rows, graph, CPU, edges_per_block) is None

    @pytest.mark.gpu
    @pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
    @pytest.mark.parametrize("graph_on_device", [False, True])
    def test_a_gpu_agrees(self, name: str, graph: UnionGraph, graph_on_device: bool) -> None:
        device = torch.device("cuda")
        here = embed(*build(name, graph), graph, CPU, 40)
        encoder, rows = build(name, graph, device)
        place = graph.to(device) if graph_on_device else graph
        there = embed(encoder, rows, place, device, 40)
        assert here is not None
        assert there is not None
        assert there.device.type == "cpu"
        assert there.dtype == torch.float16
        torch.testing.assert_close(there.float(), here, rtol=0, atol=1e-3)


@pytest.mark.parametrize("edges_per_block", [1, 3, 10, 1000])
@pytest.mark.parametrize("graph", [union(HAND), union(random_pair(7))], ids=["hand", "random"])
def test_runs_of_nodes(graph: UnionGraph, edges_per_block: int) -> None:
    runs = list(node_runs(graph.offsets, edges_per_block))
    covered = [node for start, stop in runs for node in range(start, stop)]
    assert covered == list(range(graph.num_nodes))
    for start, stop in runs:
        edges = int(graph.offsets[stop] - graph.offsets[start])
        assert stop - start <= edges_per_block
        assert edges <= edges_per_block or stop - start == 1
        if stop < graph.num_nodes and stop - start < edges_per_block:  # one more would not fit
            assert int(graph.offsets[stop + 1] - graph.offsets[start]) > edges_per_block
