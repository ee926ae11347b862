"""What a stage costs: seconds, and the most memory it held on host and GPU."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@dataclass(slots=True)
class StageCost:
    """Of one stage; `reused` where its artifact was there already."""

    stage: str
    seconds: float = 0.0
    peak_host_bytes: int = 0
    peak_gpu_bytes: int | None = None
    reused: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The shape of an entry of `run.json`."""
        return {
            "stage": self.stage,
            "seconds": round(self.seconds, 3),
            "peak_host_bytes": self.peak_host_bytes,
            "peak_gpu_bytes": self.peak_gpu_bytes,
            "reused": self.reused,
        }


@contextmanager
def measured(stage: str, device: torch.device) -> Iterator[StageCost]:
    """A cost that is filled in when the block ends."""
    import torch

    cost = StageCost(stage)
    on_gpu = device.type == "cuda"
    if on_gpu:
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
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
    """Linux keeps the process's peak until told to begin anew; elsewhere it only ever grows."""
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
