"""Sizes as people write them, and how large a mini-batch they allow."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_runs import benchmark, quick

from clusterea.errors import InputError
from clusterea.pipeline.memory import (
    available,
    cell_bytes,
    expected_memory,
    largest_batch,
    parse_size,
)

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


class TestParseSize:
    @pytest.mark.parametrize(
        ("text", "size"),
        [
            ("1", 1),
            ("500", 500),
            ("500b", 500),
            ("500 B", 500),
            ("2k", 2_000),
            ("2kB", 2_000),
            ("2KB", 2_000),
            ("2KiB", 2_048),
            ("2Ki", 2_048),
            ("500MB", 500_000_000),
            ("3M", 3_000_000),
            ("3mib", 3 << 20),
            ("8g", 8_000_000_000),
            ("8G", 8_000_000_000),
            ("20GiB", 20 << 30),
            ("20 GiB", 20 << 30),
            (" 20gib\n", 20 << 30),
            ("1.5GiB", 3 << 29),
            ("0.5g", 500_000_000),
            ("1t", 10**12),
            ("2TiB", 2 << 40),
        ],
    )
    def test_good(self, text: str, size: int) -> None:
        assert parse_size(text) == size

    @pytest.mark.parametrize(
        "text",
        [
            *("", " ", "GiB", "-1g", "+1g", "1e9", ".5g", "5.g", "1,5g", "1_000", "20 gigs", "8gg"),
            *("8gbi", "8ib", "20GiB 4", "20 Gi B", "half", "0x10", "nan", "inf", "8p"),
        ],
    )
    def test_bad(self, text: str) -> None:
        with pytest.raises(InputError, match=r"--memory must be a size, as 20GiB\. Got '"):
            parse_size(text)

    @pytest.mark.parametrize("text", ["0", "0GiB", "0.0 k", "0.4"])
    def test_nothing(self, text: str) -> None:
        with pytest.raises(InputError, match=r"--memory must be more than nothing\. Got '"):
            parse_size(text)


class TestLargestBatch:
    @given(
        st.tuples(st.integers(0, 1 << 50), st.integers(0, 1 << 50)).map(sorted),
        st.sampled_from([CPU, CUDA]),
    )
    def test_more_memory_is_never_less(self, sizes: list[int], device: torch.device) -> None:
        less, more = (largest_batch(size, device) for size in sizes)
        assert 1 <= less <= more

    @given(st.integers(1 << 10, 1 << 50), st.sampled_from([CPU, CUDA]))
    def test_its_matrix_fits(self, memory: int, device: torch.device) -> None:
        side = largest_batch(memory, device)
        assert side * side * cell_bytes(device) <= memory
        assert (2 * side) ** 2 * cell_bytes(device) > memory  # and not by far

    def test_a_gpu_holds_more(self) -> None:
        assert largest_batch(1 << 30, CUDA) > largest_batch(1 << 30, CPU)


def test_there_is_some() -> None:
    found = available(CPU)
    assert found is None or found > 1 << 20


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

    def test_large_mini_batches_count(self) -> None:
        task = benchmark((9000, 8000), degree=3).task
        few, many = (
            expected_memory(task, quick(f"sampling.num_batches={number}"), CPU)
            for number in (1, 50)
        )
        assert few.host - many.host > 8000 * 8000 * 4
        bounded = quick("sampling.num_batches=1", "sampling.max_batch=100")
        assert expected_memory(task, bounded, CPU).host <= many.host
