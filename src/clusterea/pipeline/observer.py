"""`Observer`: receives the progress of a run."""

from __future__ import annotations

import warnings
from typing import Protocol

from clusterea.types import StageCost


class Observer(Protocol):
    """Receives the start, progress and end of each stage, and warnings."""

    def begin(self, stage: str) -> None: ...
    def step(self, stage: str, what: str, done: int, total: int) -> None: ...
    def end(self, cost: StageCost) -> None: ...
    def warn(self, message: str) -> None: ...


class Silent:
    """An observer that does nothing."""

    def begin(self, stage: str) -> None: ...
    def step(self, stage: str, what: str, done: int, total: int) -> None: ...
    def end(self, cost: StageCost) -> None: ...
    def warn(self, message: str) -> None: ...


class PythonWarnings(Silent):
    """Turns warnings into Python warnings, and ignores the rest."""

    def warn(self, message: str) -> None:
        warnings.warn(message, stacklevel=2)
