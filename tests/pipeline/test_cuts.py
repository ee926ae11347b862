"""METIS beside other work: the same parts as here and now, once, and never left running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_runs import benchmark

from clusterea.graph import metis
from clusterea.graph.metis import RunningMetis
from clusterea.graph.subtask import subtask
from clusterea.pipeline import cuts as module
from clusterea.pipeline.cuts import Cuts
from clusterea.pipeline.store import Made, Store
from clusterea.samplers import metis_cut
from clusterea.types import AlignmentTask, Pair
from clusterea.workspace import Workspace


@pytest.fixture(scope="module")
def task() -> AlignmentTask:
    return benchmark((120, 90)).task


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[RunningMetis]:
    processes: list[RunningMetis] = []

    def recorded(*arguments: Any) -> RunningMetis:
        processes.append(metis.begin(*arguments))
        return processes[-1]

    monkeypatch.setattr(module, "begin", recorded)
    return processes


@contextmanager
def cuts_of(task: AlignmentTask, folder: Path | None = None) -> Iterator[Cuts]:
    workspace = None if folder is None else Workspace(folder)
    cuts = Cuts(Store(workspace), Made.of("task-0", task))
    try:
        yield cuts
    finally:
        cuts.close()


def test_the_same_parts_as_here_and_now(task: AlignmentTask, begun: list[RunningMetis]) -> None:
    with cuts_of(task) as cuts:
        cuts.begin(["cmcs", "iscs", "iscs-reverse", "metis-cps", "vps"], 4, 1)
        assert len(begun) == 2  # one a side
        for graph in task.graphs:
            assert np.array_equal(cuts(graph, 4, 1), metis_cut(graph, 4, 1))
    for process in begun:
        assert process._process.poll() is not None


def test_what_was_not_begun_is_cut_here(task: AlignmentTask, begun: list[RunningMetis]) -> None:
    with cuts_of(task) as cuts:
        cuts.begin(["iscs"], 4, 1)
        for parts, seed in ((4, 2), (5, 1)):
            wanted = metis_cut(task.graphs.source, parts, seed)
            assert np.array_equal(cuts(task.graphs.source, parts, seed), wanted)
        assert len(begun) == 1
    assert begun[0]._process.poll() is not None


def test_one_part_needs_nobody(task: AlignmentTask, begun: list[RunningMetis]) -> None:
    with cuts_of(task) as cuts:
        cuts.begin(["iscs", "metis-cps-reverse"], 1, 0)
        assert not begun
        assert not cuts(task.graphs.source, 1, 0).any()


def test_an_error_stops_them(task: AlignmentTask, begun: list[RunningMetis]) -> None:
    with pytest.raises(KeyboardInterrupt), cuts_of(task) as cuts:
        cuts.begin(["iscs", "iscs-reverse"], 4, 1)
        raise KeyboardInterrupt
    assert [process._process.poll() is not None for process in begun] == [True, True]
    cuts.close()  # twice does no harm


class TestKept:
    def test_with_the_run(
        self, task: AlignmentTask, begun: list[RunningMetis], tmp_path: Path
    ) -> None:
        def cut(seed: int) -> Any:
            with cuts_of(task, tmp_path) as cuts:
                cuts.begin(["iscs"], 4, seed)
                return cuts(task.graphs.source, 4, seed)

        first = cut(1)
        assert np.array_equal(cut(1), first)
        assert len(begun) == 1
        cut(2)
        assert len(begun) == 2
        assert len(list(tmp_path.glob("metis-*"))) == 2

    def test_sides_are_not_taken_for_each_other(
        self, task: AlignmentTask, begun: list[RunningMetis], tmp_path: Path
    ) -> None:
        with cuts_of(task, tmp_path) as cuts:
            parts = task.graphs.map(lambda graph: cuts(graph, 4, 1))
        assert parts.map(len) == Pair(120, 90)
        with cuts_of(task, tmp_path) as cuts:
            for graph, wanted in task.graphs.zip(parts):
                assert np.array_equal(cuts(graph, 4, 1), wanted)
        assert not begun

    def test_a_mini_batch_that_is_split_is_not(self, task: AlignmentTask, tmp_path: Path) -> None:
        part = subtask(task, Pair(np.arange(50), np.arange(40)))
        with cuts_of(task, tmp_path) as cuts:
            found = cuts(part.graphs.source, 3, 0)
        assert np.array_equal(found, metis_cut(part.graphs.source, 3, 0))
        assert not list(tmp_path.glob("metis-*"))


def test_what_metis_says_is_passed_on(task: AlignmentTask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metis, "__name__", "clusterea.no_such_module")
    with cuts_of(task) as cuts:
        cuts.begin(["iscs"], 4, 1)
        with pytest.raises(RuntimeError, match="METIS failed: .*no_such_module"):
            cuts(task.graphs.source, 4, 1)
