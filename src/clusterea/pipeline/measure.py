"""`measured`: seconds and peak memory of a block."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from clusterea.freed_memory import give_back
from clusterea.types import StageCost

if TYPE_CHECKING:
    import torch


@contextmanager
def measured(stage: str, device: torch.device) -> Iterator[StageCost]:
    """A cost that is set when the block ends."""
    import torch

    cost = StageCost(stage)
    on_gpu = device.type == "cuda"
    if on_gpu:
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
    give_back()
    _forget_peak()
    start = time.perf_counter()
    try:
        yield cost
    finally:
        if on_gpu:
            torch.cuda.synchronize(device)
            cost.peak_gpu_bytes = torch.cuda.max_memory_allocated(device)
        cost.seconds = time.perf_counter() - start
        cost.peak_host_bytes = _peak()


def _forget_peak() -> None:
    """Resets the process's peak memory, where Linux allows it; elsewhere the peak only grows."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak() -> int:
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
