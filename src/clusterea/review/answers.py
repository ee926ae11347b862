"""`answers_of`: the answers that a run's folder holds."""

from __future__ import annotations

from pathlib import Path

from clusterea.review.log import DecisionLog
from clusterea.types import Answer, Benchmark
from clusterea.workspace import DECISIONS


def answers_of(run: Path, benchmark: Benchmark) -> list[Answer]:
    """The answers in the run's folder, in their order; none if there is no file of them."""
    path = run / DECISIONS
    if not path.exists():
        return []
    return list(DecisionLog(path, benchmark.names, benchmark.labels).answers)
