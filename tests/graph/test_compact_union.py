"""`CompactUnion` on a GPU, and shared by encoders. Its content is checked by `test_union.py`."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch

from clusterea.graph import compact_union as module
from clusterea.graph.compact_union import CompactUnion, Unions
from clusterea.graph.union import UnionGraph, _normalized, union, union_bytes
from clusterea.numerics.segments import offsets_of
from clusterea.types import KnowledgeGraph, Pair
from small_graphs import HAND, graph, random_pair

CPU = torch.device("cpu")
EMPTY = Pair(graph([], 0, 0), graph([], 3, 2))
GRAPHS = [HAND, EMPTY, random_pair(0), random_pair(1, entities=9, relations=30, triples=900)]
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def check_same(one: CompactUnion | UnionGraph, other: CompactUnion | UnionGraph) -> None:
    for field in fields(one):
        wanted, found = getattr(one, field.name), getattr(other, field.name)
        if field.name in ("weights", "self_weights"):
            torch.testing.assert_close(found.cpu(), wanted, rtol=1e-6, atol=0)
        elif isinstance(wanted, torch.Tensor):
            assert found.dtype == wanted.dtype, field.name
            assert torch.equal(found.cpu(), wanted), field.name
        else:
            assert found == wanted, field.name


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("graphs", GRAPHS)
def test_a_gpu_makes_the_same(graphs: Pair[KnowledgeGraph]) -> None:
    device = torch.device("cuda:0")
    found = CompactUnion.of(graphs, device)
    assert found.offsets.device == device
    check_same(CompactUnion.of(graphs), found)
    check_same(union(graphs), union(graphs, found))


@pytest.mark.gpu
@needs_gpu
def test_where_a_gpu_has_too_little_memory_a_cpu_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def blocks(graphs: Pair[KnowledgeGraph], device: torch.device) -> object:
        asked.append(device.type)
        return iter(())

    monkeypatch.setattr(module, "_blocks", blocks)
    monkeypatch.setattr(module, "available", lambda device: 1000)
    found = CompactUnion.of(HAND, torch.device("cuda:0"))
    assert asked == ["cpu"]
    assert found.offsets.is_cuda


def test_weights_of_a_gpu_are_those_of_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    built = union(random_pair(0))
    counts = built.offsets.diff()
    receivers = torch.arange(built.num_nodes).repeat_interleave(counts)
    draw = torch.Generator().manual_seed(0)
    raw = torch.rand(built.num_edges, generator=draw, dtype=torch.float64)
    arguments = raw, receivers, built.neighbors, offsets_of(counts)
    wanted = _normalized(*arguments)

    class NoCpu:  # so that the branch for a GPU runs
        type = "other"

    class Elsewhere(torch.Tensor):
        device = NoCpu()  # type: ignore[assignment]

    found = _normalized(raw.as_subclass(Elsewhere), *arguments[1:])
    for one, other in zip(wanted, found, strict=True):
        torch.testing.assert_close(other.as_subclass(torch.Tensor), one, rtol=1e-6, atol=0)


def test_encoders_of_the_same_graphs_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Pair[KnowledgeGraph]] = []
    of = CompactUnion.of

    def counted(graphs: Pair[KnowledgeGraph], device: torch.device) -> CompactUnion:
        made.append(graphs)
        return of(graphs, device)

    monkeypatch.setattr(CompactUnion, "of", counted)
    unions, other = Unions(), random_pair(1)
    assert unions.of(HAND, CPU).neighbors is unions.of(HAND, CPU).neighbors
    check_same(of(other), unions.of(other, CPU))
    assert made == [HAND, other]


def test_the_bytes_are_at_least_those_of_the_union() -> None:
    for graphs in GRAPHS:
        found = CompactUnion.of(graphs)
        of_sets = 8 * (len(found.set_offsets) + len(found.set_relations))
        assert union(graphs, found).num_bytes() <= union_bytes(found) + of_sets + 100
