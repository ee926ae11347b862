"""`edge_blocks` against sorting the edges one by one."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clusterea.graph import sorted_edges as module
from clusterea.graph.sorted_edges import EdgeBlock, edge_blocks, keys_on
from clusterea.numerics.block_sizes import BLOCK_SIZES
from clusterea.types import KnowledgeGraph
from small_graphs import graph, knowledge_graphs, random_pair


def blocks_of(some: KnowledgeGraph) -> list[EdgeBlock]:
    ends = some.heads, some.tails
    sizes = some.num_entities, some.num_relations
    return list(edge_blocks(ends, some.relations, *sizes, torch.device("cpu")))


def check(some: KnowledgeGraph) -> None:
    blocks, count = blocks_of(some), some.num_relations
    wanted = []
    for head, relation, tail in some.triples.tolist():
        wanted += [(head, tail, relation), (tail, head, relation + count)]
    wanted.sort()
    found = [
        edge
        for block in blocks
        for edge in zip(
            block.owners.tolist(), block.others.tolist(), block.labels.tolist(), strict=True
        )
    ]
    assert found == wanted
    is_new = [each for block in blocks for each in block.is_new.tolist()]
    assert is_new == [i == 0 or wanted[i] != wanted[i - 1] for i in range(len(wanted))]
    is_new = [each for block in blocks for each in block.is_new_pair.tolist()]
    assert is_new == [i == 0 or wanted[i][:2] != wanted[i - 1][:2] for i in range(len(wanted))]
    # No entity is in two blocks.
    for block in blocks:
        assert {block.start, block.stop - 1} <= set(block.owners.tolist())
    for one, other in pairwise(blocks):
        assert one.stop <= other.start


@given(knowledge_graphs(), st.integers(1, 30), st.integers(0, 62))
def test_any_graph_in_any_blocks(some: KnowledgeGraph, block: int, bits: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BLOCK_SIZES, "sorted edges", {"cpu": block})
        patch.setattr(module, "KEY_BITS", bits)
        check(some)


@given(knowledge_graphs(), st.integers(0, 5), st.integers(1, 6))
def test_keys_of_a_gpu_are_those_of_a_cpu(some: KnowledgeGraph, first: int, size: int) -> None:
    entities = range(first, min(first + size, some.num_entities))
    ends, bits = (some.heads, some.tails), (3, 4)
    arguments = ends, some.relations, some.num_relations, entities, bits
    found = keys_on(torch.device("cpu"), *arguments)
    assert found.tolist() == module._keys(*arguments).tolist()


def test_a_hub_is_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BLOCK_SIZES, "sorted edges", {"cpu": 4})
    star = graph([(5, 0, i) for i in range(10)], 10, 1)
    check(star)
    assert max(len(block.owners) for block in blocks_of(star)) == 11


def test_labels_of_each_entity() -> None:
    for block in blocks_of(random_pair(0).source):
        edges = list(zip(block.owners.tolist(), block.labels.tolist(), strict=True))
        for chosen in (None, block.is_new_pair):
            kept = edges if chosen is None else [edges[i] for i in chosen.nonzero().flatten()]
            wanted = sorted(Counter(kept).items())
            owned, labels, counts = block.by_label(block.labels, 8, chosen)
            assert labels.tolist() == [label for (_, label), _ in wanted]
            assert counts.tolist() == [count for _, count in wanted]
            holders = Counter(owner for (owner, _), _ in wanted)
            assert owned.tolist() == [holders[i] for i in range(block.start, block.stop)]
