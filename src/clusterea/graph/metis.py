"""METIS: a graph cut into parts of equal size with few edges between them."""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import numpy as np

from clusterea.graph.functionality import distinct
from clusterea.types import IntArray, KnowledgeGraph


@dataclass(frozen=True, slots=True)
class SimpleGraph:
    """An undirected graph without loops or parallel edges; each edge stands under both its ends."""

    offsets: IntArray  # (nodes + 1,)
    neighbors: IntArray  # (2 edges,), rising within a node

    @property
    def num_nodes(self) -> int:
        return len(self.offsets) - 1

    def owners(self) -> IntArray:
        """(2 edges,): the node under which each entry of `neighbors` stands."""
        return np.repeat(np.arange(self.num_nodes), np.diff(self.offsets))


def simple_graph(graph: KnowledgeGraph) -> SimpleGraph:
    """Who is joined by some triple with whom."""
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

    The parts are equal to 3 %. Where there are no more nodes than parts, each node is a part.

    Args:
        graph: What to cut.
        num_parts: At least 1.
        seed: METIS's own.
        weights: (2 edges,) whole numbers from 1: the cost of cutting each; None: one each.
    """
    import pymetis

    if num_parts >= graph.num_nodes:
        return np.arange(graph.num_nodes)
    if num_parts == 1:
        return np.zeros(graph.num_nodes, dtype=np.int64)
    if len(graph.neighbors) == 0:  # nothing to cut, and METIS is not made for it
        return np.arange(graph.num_nodes) % num_parts
    # METIS takes seeds 0 and 1 for the same, and reads 32 bits of them.
    cut = pymetis.part_graph(
        num_parts,
        pymetis.CSRAdjacency(graph.offsets, graph.neighbors),
        eweights=weights,
        recursive=False,
        options=pymetis.Options(seed=seed % 2**32 + 1),
    )
    return np.asarray(cut.vertex_part, dtype=np.int64)


class MetisBeside:
    """METIS in a process of its own: it holds Python's lock for as long as it runs.

    The graph goes there, and the parts come back, by files without a name: a run that is killed
    leaves nothing behind. The process ends with ours, however ours ends: the system sends it a
    signal when our end of a pipe is closed. A thread of its own could not watch: METIS holds the
    lock there too.
    """

    def __init__(self, graph: SimpleGraph, num_parts: int, seed: int) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # `stop` closes it
        self._parts: IntArray | None = None
        reading, writing = os.pipe()
        self._lifeline = os.fdopen(writing, "wb")
        with tempfile.TemporaryFile() as given, os.fdopen(reading, "rb"):
            np.save(given, graph.offsets)
            np.save(given, graph.neighbors)
            given.seek(0)
            self._process = subprocess.Popen(  # noqa: S603  # our own module, our own numbers
                [sys.executable, "-m", __name__, str(num_parts), str(seed), str(reading)],
                stdin=given,
                stdout=self._file,
                stderr=subprocess.PIPE,
                pass_fds=[reading],
                process_group=0,  # so that a terminal's Ctrl-C goes to us alone
            )

    def result(self) -> IntArray:
        """(nodes,): what `metis` returns, as soon as it is there."""
        if self._parts is None:
            _, complaint = self._process.communicate()
            if self._process.returncode != 0:
                raise RuntimeError(f"METIS failed: {complaint.decode(errors='replace').strip()}")
            self._file.seek(0)
            self._parts = np.load(self._file)
        return self._parts

    def stop(self) -> None:
        """Ends the process if it still runs."""
        self._process.kill()  # does nothing where it has ended
        self._process.wait()
        self._lifeline.close()
        if self._process.stderr is not None:
            self._process.stderr.close()
        self._file.close()


def _end_with_parent(watched: int) -> None:
    """Has the system end this process when the other end of a pipe is closed."""
    fcntl.fcntl(watched, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(watched, fcntl.F_GETFL)
    fcntl.fcntl(watched, fcntl.F_SETFL, flags | os.O_ASYNC)  # SIGIO, which ends a process
    if select.select([watched], [], [], 0)[0]:  # it was closed before
        sys.exit(1)


def _main(num_parts: int, seed: int, watched: int) -> None:
    _end_with_parent(watched)
    given = sys.stdin.buffer
    graph = SimpleGraph(np.load(given), np.load(given))
    np.save(sys.stdout.buffer, metis(graph, num_parts, seed))


if __name__ == "__main__":
    _main(*(int(text) for text in sys.argv[1:]))
