"""METIS against cuts that can be checked by hand, and in another process."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterea.graph.metis import SimpleGraph, begin, from_edges, metis, simple_graph
from clusterea.types import IntArray, KnowledgeGraph
from small_graphs import knowledge_graphs, random_pair

Edge = tuple[int, int]


def simple(edges: list[Edge], nodes: int) -> SimpleGraph:
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return from_edges(ends[:, 0], ends[:, 1], nodes)


def edges_of(graph: SimpleGraph) -> list[Edge]:
    return list(zip(graph.owners().tolist(), graph.neighbors.tolist(), strict=True))


def weighted(graph: SimpleGraph, heavy: dict[Edge, int]) -> IntArray:
    """Each edge's weight under both its ends; one where nothing else is said."""
    both = heavy | {(tail, head): weight for (head, tail), weight in heavy.items()}
    return np.array([both.get(edge, 1) for edge in edges_of(graph)])


CLIQUES = simple([*combinations(range(6), 2), *combinations(range(6, 12), 2), (2, 9)], 12)
#: 0-1-2-3-0: cut in two equal parts, it loses two opposite edges.
SQUARE = simple([(0, 1), (1, 2), (2, 3), (3, 0)], 4)


class TestSimpleGraph:
    @given(knowledge_graphs())
    def test_against_a_set_of_pairs(self, graph: KnowledgeGraph) -> None:
        joined = {(h, t) for h, _, t in graph.triples.tolist() if h != t}
        built = simple_graph(graph)
        assert built.num_nodes == graph.num_entities
        assert edges_of(built) == sorted(joined | {(t, h) for h, t in joined})

    def test_nobody(self) -> None:
        assert simple([], 0).num_nodes == 0
        assert edges_of(simple([], 3)) == []


class TestCut:
    @pytest.mark.parametrize("seed", range(5))
    def test_two_cliques_joined_by_one_edge(self, seed: int) -> None:
        parts = metis(CLIQUES, 2, seed).tolist()
        assert len(set(parts[:6])) == len(set(parts[6:])) == 1
        assert parts[0] != parts[6]

    @pytest.mark.parametrize("heavy", [[(0, 1), (2, 3)], [(1, 2), (3, 0)]])
    def test_weights_decide_the_cut(self, heavy: list[Edge]) -> None:
        weights = weighted(SQUARE, dict.fromkeys(heavy, 50))
        for seed in range(5):
            parts = metis(SQUARE, 2, seed, weights)
            assert all(parts[head] == parts[tail] for head, tail in heavy)
            assert len(set(parts.tolist())) == 2

    def test_is_far_better_than_chance_and_equal(self) -> None:
        graph = simple_graph(random_pair(0, entities=400, triples=700).source)
        parts = metis(graph, 4, 0)
        assert parts.dtype == np.int64
        assert np.bincount(parts, minlength=4).max() <= 103  # 3 % above the mean
        cut = float((parts[graph.owners()] != parts[graph.neighbors]).mean())
        assert cut < 0.4  # by chance 0.75

    def test_seeds(self) -> None:
        graph = simple_graph(random_pair(0, entities=300, triples=900).source)
        cuts = [metis(graph, 5, seed).tolist() for seed in (0, 0, 1, 2)]
        assert cuts[0] == cuts[1]
        assert cuts[0] != cuts[2] != cuts[3]
        for seed in (2**31, 2**32 - 1, 2**63 - 1, 2**70):
            assert len(metis(graph, 5, seed)) == 300
        assert metis(graph, 5, 2**32 + 1).tolist() == cuts[2]  # METIS reads 32 bits

    @given(knowledge_graphs(), st.integers(1, 9))
    def test_any_graph_and_any_number_of_parts(self, graph: KnowledgeGraph, parts: int) -> None:
        labels = metis(simple_graph(graph), parts, 0)
        assert labels.shape == (graph.num_entities,)
        assert ((labels >= 0) & (labels < parts)).all()

    def test_no_more_nodes_than_parts(self) -> None:
        assert metis(SQUARE, 4, 0).tolist() == [0, 1, 2, 3]
        assert metis(SQUARE, 9, 0).tolist() == [0, 1, 2, 3]
        assert metis(simple([], 0), 2, 0).tolist() == []

    def test_no_edges_are_dealt_evenly(self) -> None:
        assert metis(simple([], 7), 3, 0).tolist() == [0, 1, 2, 0, 1, 2, 0]


class TestBegin:
    def test_gives_what_metis_gives_as_often_as_asked(self) -> None:
        graph = simple_graph(random_pair(0, entities=300, triples=900).source)
        running = begin(graph, 5, 2)
        assert running.result().tolist() == metis(graph, 5, 2).tolist()
        assert running.result().tolist() == metis(graph, 5, 2).tolist()
        running.stop()

    def test_can_be_stopped(self) -> None:
        running = begin(CLIQUES, 2, 0)
        process = running._process
        assert process.poll() is None
        running.stop()
        assert process.poll() is not None
        running.stop()  # twice is once

    def test_stopping_when_it_is_done_leaves_nothing_open(self) -> None:
        running = begin(CLIQUES, 2, 0)
        running._process.wait()
        running.stop()
        for stream in (running._process.stdin, running._process.stdout, running._process.stderr):
            assert stream is not None
            assert stream.closed

    def test_a_failure_is_told(self) -> None:
        running = begin(CLIQUES, 0, 0)
        with pytest.raises(RuntimeError, match="METIS failed: (.|\n)*Error"):
            running.result()
        running.stop()

    def test_being_killed_is_a_failure(self) -> None:
        running = begin(CLIQUES, 2, 0)
        running._process.kill()
        with pytest.raises(RuntimeError, match="METIS failed"):
            running.result()
        running.stop()


# A graph that METIS cuts for a long time, and its process id; then a pause until it is killed.
PARENT = """
import sys, time
import numpy as np
from clusterea.graph.metis import begin, from_edges
draw = np.random.default_rng(0)
ends = draw.integers(300_000, size=(2, 1_500_000))
running = begin(from_edges(*ends, 300_000), 500, 0)
print(running._process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("number", "after"),  # 2 s later METIS has the lock
    [(signal.SIGKILL, 0.0), (signal.SIGKILL, 2.0), (signal.SIGTERM, 2.0)],
)
def test_it_ends_with_its_parent(number: signal.Signals, after: float) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        time.sleep(after)
        assert is_running(child)
        parent.send_signal(number)
        parent.wait()
    until = time.monotonic() + 5
    while is_running(child) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_running(child)


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
