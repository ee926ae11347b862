"""`StageCost`: the time and memory of a stage."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(slots=True)
class StageCost:
    """Seconds, and peak memory on host and GPU; None if not measured."""

    stage: str
    seconds: float = 0.0
    peak_host_bytes: int | None = None
    peak_gpu_bytes: int | None = None
    reused: bool = False  # its result was stored by an earlier run

    def to_dict(self) -> dict[str, Any]:
        """The cost as in `run.json`."""
        return asdict(self) | {"seconds": round(self.seconds, 3)}
