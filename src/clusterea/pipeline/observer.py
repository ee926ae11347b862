"""`Observer`: who is told how far a run is."""

from __future__ import annotations

import warnings
from typing import Protocol

from clusterea.types import StageCost


class Observer(Protocol):
    """Told when stages begin and end, how far they are, and what was damaged and is made again."""

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
    """Passes on warnings alone, through Python's `warnings`: for callers without an observer."""

    def warn(self, message: str) -> None:
        warnings.warn(message, stacklevel=2)
