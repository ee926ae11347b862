"""`give_back` and `keep_freed`."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from clusterea.freed_memory import give_back, keep_freed

MEGABYTE = 10**6


def private_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon in /proc/self/status")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells private memory")
def test_free_memory_goes_back_to_the_system() -> None:
    # Small pieces are in the heap. Those that stay keep the end of the heap in use.
    pieces = [bytearray(b"x" * 50_000) for _ in range(4_000)]  # 200 MB
    kept = pieces[::20]
    del pieces
    before = private_bytes()
    give_back()
    assert private_bytes() < before - 100 * MEGABYTE
    assert all(len(piece) == 50_000 for piece in kept)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells private memory")
def test_large_pieces_go_back_at_once() -> None:
    give_back()
    large = 20 * MEGABYTE
    first = np.ones(large, np.uint8)
    del first  # after this, glibc would put the next ones into the heap
    pieces = [(np.ones(large, np.uint8), np.ones(50_000, np.uint8)) for _ in range(20)]
    kept = [small for _, small in pieces]
    before = private_bytes()
    del pieces
    assert private_bytes() < before - 15 * large
    assert all(len(piece) == 50_000 for piece in kept)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells private memory")
def test_kept_memory_is_used_again_and_goes_back_in_the_end() -> None:
    large, pages = 100 * MEGABYTE, 100 * MEGABYTE // resource.getpagesize()
    give_back()
    before = private_bytes()

    def faults() -> int:
        start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for step in range(1, 6):
            torch.ones(large - step * MEGABYTE, dtype=torch.uint8)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - start

    with keep_freed():
        torch.ones(large, dtype=torch.uint8)
        assert private_bytes() > before + large / 2
        assert faults() < pages / 2
    assert private_bytes() < before + large / 2
    assert faults() > 4 * pages
