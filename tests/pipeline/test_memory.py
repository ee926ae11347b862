"""How large a mini-batch a bound on memory allows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_runs import benchmark, in_rounds, quick

from clusterea.config import Config, preset
from clusterea.numerics.block_sizes import available
from clusterea.pipeline import Silent, align, run_in_folder
from clusterea.pipeline.memory import (
    cell_bytes,
    expected_disk,
    expected_memory,
    largest_batch,
    widths,
)
from clusterea.types import AlignmentTask, Pair
from clusterea.workspace import Workspace

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
TASK = benchmark().task
NO_LINKS = np.empty((0, 2), dtype=np.int64)


class TestLargestBatch:
    @given(
        st.tuples(st.integers(0, 1 << 50), st.integers(0, 1 << 50)).map(sorted),
        st.sampled_from([CPU, CUDA]),
        st.sampled_from([None, TASK]),
    )
    def test_more_memory_is_never_less(
        self, sizes: list[int], device: torch.device, task: AlignmentTask | None
    ) -> None:
        less, more = (largest_batch(size, device, quick(), task) for size in sizes)
        assert 1 <= less <= more

    @given(st.integers(1 << 10, 1 << 50), st.sampled_from([CPU, CUDA]))
    def test_its_matrix_fits(self, memory: int, device: torch.device) -> None:
        side = largest_batch(memory, device, quick())
        assert side * side * cell_bytes(device) <= memory
        assert (2 * side) ** 2 * cell_bytes(device) > memory  # and not by far

    @given(st.integers(1 << 26, 1 << 50), st.sampled_from([CPU, CUDA]))
    def test_the_rest_fits_beside_it(self, memory: int, device: torch.device) -> None:
        """The matrix of its undecided entities, all vectors and neighbors, and the views."""
        config = quick()
        side = largest_batch(memory, device, config, TASK)
        sizes = [graph.num_entities for graph in TASK.graphs]
        rows, columns = ((size - TASK.num_seeds) / max(sizes) * side for size in sizes)
        matrix = rows * columns * cell_bytes(device)
        number = 2 if device.type == "cuda" else 4
        free = sum(sizes) - 2 * TASK.num_seeds
        vectors = number * sum(widths(config)) * free
        cells = config.fusion.candidates * free  # of a view; of the neighbors as many
        views = cells * (12 * len(config.samplers) + 20)
        beside = vectors + views
        assert matrix + min(beside, 0.9 * memory) <= memory
        assert 4 * matrix + 2 * beside > memory / 4  # and not by far

    def test_wider_vectors_leave_less(self) -> None:
        narrow, wide = (
            largest_batch(1 << 26, CPU, quick(f"training.dimension={dimension}"), TASK)
            for dimension in (16, 256)
        )
        assert wide < narrow

    def test_a_gpu_holds_more(self) -> None:
        assert largest_batch(1 << 30, CUDA, quick()) > largest_batch(1 << 30, CPU, quick())


def task_of_share(share: float) -> AlignmentTask:
    """A pair whose seeds are this share of the entities."""
    task = benchmark((60, 50)).task
    return task.with_seeds(np.arange(int(share * 50)).repeat(2).reshape(-1, 2))


class TestWidths:
    def test_of_each_encoder(self) -> None:
        assert widths(quick()) == [6 * 16]
        assert widths(preset("paper", 300, model="gcn-align")) == [200]
        assert widths(preset("fast", 300), task_of_share(0.5)) == [2048]

    def test_where_seeds_are_few(self) -> None:
        """Two folds, each of fewer features; it is so also where no task is known."""
        assert widths(preset("fast", 300), task_of_share(0.1)) == [512, 512]
        assert widths(preset("fast", 300)) == [512, 512]

    def test_of_each_fold_where_there_are_rounds(self) -> None:
        assert widths(in_rounds()) == [96, 96, 48, 48]
        assert widths(in_rounds("self_training.trained_rounds=2")) == 2 * [96, 96, 48, 48]
        assert widths(in_rounds("self_training.trained_rounds=3", "self_training.rounds=4")) == (
            2 * [96, 96, 48, 48]
        )
        assert widths(in_rounds("self_training.folds=1")) == [96, 48]
        assert widths(in_rounds("self_training.rounds=0")) == [96, 48]

    def test_they_are_those_of_a_run(self) -> None:
        small = benchmark((160, 130), share=0.6)
        for config in (quick(samplers=[]), in_rounds(), preset("fast", 160)):
            found = align(small.task, config, CPU).encodings
            known = widths(config, small.task)
            assert sorted(each.source.shape[1] for each in found) == sorted(known)


def test_there_is_some() -> None:
    found = available(CPU)
    assert found is None or found > 1 << 20


class TestExpectedDisk:
    @pytest.mark.parametrize(
        ("entities", "share", "config"),
        [
            ((300, 250), 0.3, quick()),
            ((400, 350), 0.6, in_rounds()),
            ((400, 350), 0.6, in_rounds("matching.fits=2", "self_training.trained_rounds=2")),
            ((1500, 1200), 0.3, preset("fast", 1500)),
        ],
        ids=["mini-batches", "rounds", "fits", "fast"],
    )
    def test_it_is_about_what_a_run_takes(
        self, entities: tuple[int, int], share: float, config: Config, tmp_path: Path
    ) -> None:
        small = benchmark(entities, share=share)
        run_in_folder(Workspace(tmp_path), small, config, CPU, Silent())
        taken = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
        assert taken / 1.5 < expected_disk(small, config) < 1.5 * taken

    def test_structural_entities_have_no_candidates(self) -> None:
        whole = benchmark((300, 250))
        lone = np.setdiff1d(np.arange(250), whole.task.seeds[:, 1])[:40]
        fewer = replace(
            whole, task=replace(whole.task, structural=Pair(lone[:0], lone)), test_links=NO_LINKS
        )
        config = quick("fusion.candidates=100", samplers=[])
        assert expected_disk(whole, config) - expected_disk(fewer, config) == 8 * 100 * 40


class TestExpected:
    def test_it_grows_with_what_it_depends_on(self) -> None:
        small, large = benchmark().task, benchmark((900, 800)).task
        for device in (CPU, CUDA):
            base = expected_memory(small, quick(), device)
            assert expected_memory(large, quick(), device).host > base.host
            assert (base.gpu > 0) == (device is CUDA)
            wide = expected_memory(small, quick("training.dimension=512"), device)
            assert wide.host > base.host
            assert wide.gpu >= base.gpu
            labels = expected_memory(small, in_rounds(), device)
            more = expected_memory(small, in_rounds("propagation.features=4096"), device)
            assert more.host > labels.host
            assert more.gpu >= labels.gpu

    def test_mini_batches_count_only_where_there_are_any(self) -> None:
        task = benchmark((9000, 8000), degree=3).task
        alone = quick("sampling.num_batches=1", samplers=[])
        few = expected_memory(task, quick("sampling.num_batches=1"), CPU)
        assert few.host - expected_memory(task, alone, CPU).host > 8000 * 8000 * 4

    def test_candidates_count_where_there_are_no_mini_batches(self) -> None:
        task = benchmark((9000, 8000), degree=3).task
        few, many = (
            expected_memory(task, quick(f"fusion.candidates={number}", samplers=[]), CPU)
            for number in (100, 200)
        )
        assert many.host - few.host == 3 * 20 * 100 * (17_000 - 2 * task.num_seeds)

    def test_large_mini_batches_count(self) -> None:
        task = benchmark((9000, 8000), degree=3).task
        few, many = (
            expected_memory(task, quick(f"sampling.num_batches={number}"), CPU)
            for number in (1, 50)
        )
        assert few.host - many.host > 8000 * 8000 * 4
        bounded = quick("sampling.num_batches=1", "sampling.max_batch=100")
        assert expected_memory(task, bounded, CPU).host <= many.host
