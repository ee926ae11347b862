"""Expansion against the graph it draws from."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from clusterea.graph.expansion import (
    Block,
    Expander,
    draw_without_replacement,
    incidence,
    whole_block,
)
from clusterea.graph.union import UnionGraph, union
from clusterea.types import KnowledgeGraph, Pair
from small_graphs import HAND, pairs, random_pair


def draw(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def built() -> UnionGraph:
    return union(random_pair(2))


def full(built: UnionGraph, node: int) -> dict[int, tuple[int, float]]:
    """What a node hears in the whole graph: by sender, the set of relations and the weight."""
    edges = range(int(built.offsets[node]), int(built.offsets[node + 1]))
    return {
        int(built.neighbors[e]): (int(built.relation_sets[e]), float(built.weights[e]))
        for e in edges
    }


def hears(block: Block, receiver: int) -> list[tuple[int, tuple[int, float]]]:
    """The same of a receiver of a block, as a list, under the graph's ids."""
    edges = range(int(block.offsets[receiver]), int(block.offsets[receiver + 1]))
    return [
        (
            int(block.nodes[block.senders[e]]),
            (int(block.relation_sets[e]), float(block.weights[e])),
        )
        for e in edges
    ]


def check_block(built: UnionGraph, nodes: list[int], fanout: int | None, block: Block) -> None:
    """Everything a block promises, for one hop from `nodes`."""
    assert block.nodes[block.receivers].tolist() == nodes  # in their order
    assert block.num_receivers == len(nodes)
    occurring = set(nodes)
    for receiver, node in enumerate(nodes):
        there, drawn = full(built, node), hears(block, receiver)
        assert len(dict(drawn)) == len(drawn)  # nobody twice
        assert all(there[sender] == edge for sender, edge in drawn)  # real, with what it carries
        assert len(drawn) == (len(there) if fanout is None else min(fanout, len(there)))
        assert block.degrees[receiver] == len(there)
        assert block.self_weights[receiver] == built.self_weights[node]
        occurring |= dict(drawn).keys()
    assert block.nodes.tolist() == sorted(occurring)
    assert (block.num_nodes, block.num_edges) == (len(occurring), len(block.senders))


class TestHop:
    @given(pairs(), st.none() | st.integers(1, 4), st.data())
    def test_any_graph(
        self, graphs: Pair[KnowledgeGraph], fanout: int | None, data: st.DataObject
    ) -> None:
        built = union(graphs)
        nodes = data.draw(st.lists(st.integers(0, built.num_nodes - 1), max_size=6))
        block = Expander(built).hop(torch.tensor(nodes, dtype=torch.int64), fanout, draw())
        check_block(built, nodes, fanout, block)  # nodes may occur twice

    def test_a_fanout_of_the_largest_degree_takes_everything(self, built: UnionGraph) -> None:
        largest = int(built.offsets.diff().max())
        nodes = torch.tensor([40, 3, 17, 55, 0])
        expander = Expander(built)
        limited, free = (expander.hop(nodes, fanout, draw()) for fanout in (largest, None))
        for name in Block.__slots__:
            assert torch.equal(getattr(limited, name), getattr(free, name)), name

    def test_the_seed_decides(self, built: UnionGraph) -> None:
        nodes = torch.arange(built.num_nodes)
        expander = Expander(built)
        one, same, other = (expander.hop(nodes, 2, draw(seed)) for seed in (1, 1, 2))
        assert torch.equal(one.senders, same.senders)
        assert not torch.equal(one.senders, other.senders)

    def test_what_the_expander_did_before_does_not_matter(self, built: UnionGraph) -> None:
        used = Expander(built)
        used.hop(torch.arange(40), None, draw())
        nodes = torch.tensor([50, 8])
        block = used.hop(nodes, 2, draw(1))
        check_block(built, nodes.tolist(), 2, block)
        fresh = Expander(built).hop(nodes, 2, draw(1))
        for name in Block.__slots__:
            assert torch.equal(getattr(block, name), getattr(fresh, name)), name

    def test_every_neighbor_is_as_likely(self, built: UnionGraph) -> None:
        degrees = built.offsets.diff()
        node, rounds, fanout = int(degrees.argmax()), 3000, 3
        degree = int(degrees[node])
        assert degree > 6
        block = Expander(built).hop(torch.full((rounds,), node), fanout, draw(4))
        counts = Counter(block.nodes[block.senders].tolist())
        assert counts.keys() == full(built, node).keys()
        expected = rounds * fanout / degree
        statistic = sum((count - expected) ** 2 / expected for count in counts.values())
        assert statistic < 2 * degree  # its mean is below the degree


class TestExpand:
    def test_hops_hang_together(self, built: UnionGraph) -> None:
        nodes = torch.tensor([7, 2, 45])
        blocks = Expander(built).expand(nodes, 3, 2, draw())
        assert len(blocks) == 3
        receivers = nodes.tolist()
        for block in blocks:
            check_block(built, receivers, 2, block)
            receivers = block.nodes.tolist()

    def test_hops_draw_independently(self, built: UnionGraph) -> None:
        crowded = int(built.offsets.diff().argmax())
        differ = 0
        for seed in range(20):
            first, second = Expander(built).expand(torch.tensor([crowded]), 2, 2, draw(seed))
            again = second.nodes[second.receivers].tolist().index(crowded)
            differ += {s for s, _ in hears(first, 0)} != {s for s, _ in hears(second, again)}
        assert differ > 10


class TestWholeBlock:
    @pytest.mark.parametrize(("start", "stop"), [(0, 60), (10, 25), (59, 60), (20, 20)])
    def test_is_a_hop_without_fanout(self, built: UnionGraph, start: int, stop: int) -> None:
        whole = whole_block(built, start, stop)
        hop = Expander(built).hop(torch.arange(start, stop), None, draw())
        assert whole.nodes.tolist() == list(range(built.num_nodes))
        assert torch.equal(whole.nodes[whole.receivers], hop.nodes[hop.receivers])
        assert torch.equal(whole.nodes[whole.senders], hop.nodes[hop.senders])
        for name in ("offsets", "relation_sets", "weights", "self_weights", "degrees"):
            assert torch.equal(getattr(whole, name), getattr(hop, name)), name

    def test_moving_to_where_it_is_moves_nothing(self, built: UnionGraph) -> None:
        block = whole_block(built, 0, 3)
        assert block.to(torch.device("cpu")) is block


class TestIncidence:
    @pytest.mark.parametrize("graphs", [HAND, random_pair(1)], ids=["hand", "random"])
    def test_rows_are_means_over_distinct_relations(self, graphs: Pair[KnowledgeGraph]) -> None:
        built = union(graphs)
        nodes = torch.tensor([5, 0, 9, 3, 3])
        matrix = incidence(built, nodes)
        assert (matrix.num_rows, matrix.num_columns) == (5, built.num_relations)
        table = torch.arange(2.0 * built.num_relations).reshape(-1, 2)
        means = matrix @ table
        for row, node in enumerate(nodes.tolist()):
            start, stop = built.offsets[node : node + 2].tolist()
            incident: set[int] = set()
            for set_ in built.relation_sets[start:stop].tolist():
                first, last = built.set_offsets[set_ : set_ + 2].tolist()
                incident |= set(built.set_relations[first:last].tolist())
            wanted = torch.stack([table[r] for r in incident]).mean(0) if incident else 0 * table[0]
            torch.testing.assert_close(means[row], wanted)


class TestDrawWithoutReplacement:
    @given(st.lists(st.integers(3, 9), max_size=20), st.integers(0, 100))
    def test_distinct_and_within(self, sizes: list[int], seed: int) -> None:
        drawn = draw_without_replacement(torch.tensor(sizes, dtype=torch.int64), 3, draw(seed))
        assert drawn.shape == (len(sizes), 3)
        for row, size in zip(drawn.tolist(), sizes, strict=True):
            assert len(set(row)) == 3
            assert all(0 <= number < size for number in row)

    def test_every_set_is_as_likely(self) -> None:
        rounds, size, count = 15_000, 6, 2
        sizes: Tensor = torch.full((rounds,), size)
        drawn = draw_without_replacement(sizes, count, draw(11))
        counts = Counter(tuple(sorted(row)) for row in drawn.tolist())
        sets = list(combinations(range(size), count))
        expected = rounds / len(sets)
        statistic = sum((counts[some] - expected) ** 2 / expected for some in sets)
        assert statistic < 36.1  # one in a thousand: chi-square with 14 degrees of freedom
