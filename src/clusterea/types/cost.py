"""`StageCost`: what a stage took."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(slots=True)
class StageCost:
    """Seconds, and the most memory held on host and GPU; None where it was not measured."""

    stage: str
    seconds: float = 0.0
    peak_host_bytes: int | None = None
    peak_gpu_bytes: int | None = None
    reused: bool = False  # its result was there already

    def to_dict(self) -> dict[str, Any]:
        """The shape of an entry of `run.json`."""
        return asdict(self) | {"seconds": round(self.seconds, 3)}
