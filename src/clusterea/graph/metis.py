"""METIS: a graph cut into parts of equal size with few edges between them."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np

from clusterea.graph.functionality import distinct
from clusterea.types import IntArray, KnowledgeGraph

PR_SET_PDEATHSIG = 1  # of Linux: the signal that a process gets when its parent ends


@dataclass(frozen=True, slots=True)
class SimpleGraph:
    """An undirected graph without loops or parallel edges; each edge is listed at both its ends."""

    offsets: IntArray  # (nodes + 1,)
    neighbors: IntArray  # (2 edges,), ascending within a node

    @property
    def num_nodes(self) -> int:
        return len(self.offsets) - 1

    def owners(self) -> IntArray:
        """(2 edges,): the node at which each entry of `neighbors` is listed."""
        return np.repeat(np.arange(self.num_nodes), np.diff(self.offsets))


def simple_graph(graph: KnowledgeGraph) -> SimpleGraph:
    """The simple graph that joins the two entities of each triple."""
    return from_edges(graph.heads, graph.tails, graph.num_entities)


def from_edges(heads: IntArray, tails: IntArray, num_nodes: int) -> SimpleGraph:
    """The simple graph with these edges, given in any order, direction and number."""
    proper = heads != tails
    heads, tails = heads[proper], tails[proper]
    keys = distinct(np.concatenate([heads * num_nodes + tails, tails * num_nodes + heads]))
    degrees = np.bincount(keys // max(num_nodes, 1), minlength=num_nodes)
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(degrees)])
    return SimpleGraph(offsets, keys % max(num_nodes, 1))


def metis(
    graph: SimpleGraph, num_parts: int, seed: int, weights: IntArray | None = None
) -> IntArray:
    """(nodes,): the part of each node, by METIS's k-way method with its defaults.

    Part sizes differ by at most 3 %. If there are no more nodes than parts, each node is a part.

    Args:
        graph: The graph to cut.
        num_parts: At least 1.
        seed: Of METIS's random numbers.
        weights: (2 edges,) integers from 1: the cost of cutting each edge; None: 1 each.
    """
    import pymetis

    if num_parts >= graph.num_nodes:
        return np.arange(graph.num_nodes)
    if num_parts == 1:
        return np.zeros(graph.num_nodes, dtype=np.int64)
    if len(graph.neighbors) == 0:  # METIS can't cut a graph without edges
        return np.arange(graph.num_nodes) % num_parts
    # METIS treats seeds 0 and 1 alike, and reads 32 bits of a seed.
    cut = pymetis.part_graph(
        num_parts,
        pymetis.CSRAdjacency(graph.offsets, graph.neighbors),
        eweights=weights,
        recursive=False,
        options=pymetis.Options(seed=seed % 2**32 + 1),
    )
    return np.asarray(cut.vertex_part, dtype=np.int64)


class RunningMetis:
    """`metis` in another process, which does not outlive ours."""

    def __init__(self, process: subprocess.Popen[bytes], graph: SimpleGraph) -> None:
        given = np.concatenate([graph.offsets, graph.neighbors], dtype=np.int64)
        self._process = process
        executor = ThreadPoolExecutor(1)
        self._output = executor.submit(process.communicate, given.tobytes())
        executor.shutdown(wait=False)

    def result(self) -> IntArray:
        """(nodes,): what `metis` returns. Waits for it."""
        parts, complaint = self._output.result()
        if self._process.returncode != 0:
            raise RuntimeError(f"METIS failed: {complaint.decode(errors='replace').strip()}")
        return np.frombuffer(parts, dtype=np.int64)

    def stop(self) -> None:
        """Ends the process if it still runs."""
        self._process.kill()
        wait([self._output])


def begin(graph: SimpleGraph, num_parts: int, seed: int) -> RunningMetis:
    """Starts `metis` in another process. A thread would block, since pymetis holds Python's lock.

    `ProcessPoolExecutor` is not used: it imports the caller's script again, and before Python 3.14
    it can't end a running task.
    """
    numbers = (graph.num_nodes, num_parts, seed, os.getpid())
    process = subprocess.Popen(  # noqa: S603  # our own module, our own numbers
        [sys.executable, "-m", __name__, *map(str, numbers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,  # a terminal's Ctrl-C goes to us alone
    )
    return RunningMetis(process, graph)


def _main(num_nodes: int, num_parts: int, seed: int, parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before the line above
        sys.exit(1)
    given = np.frombuffer(sys.stdin.buffer.read(), dtype=np.int64)
    graph = SimpleGraph(given[: num_nodes + 1], given[num_nodes + 1 :])
    sys.stdout.buffer.write(metis(graph, num_parts, seed).tobytes())


if __name__ == "__main__":
    _main(*(int(text) for text in sys.argv[1:]))
