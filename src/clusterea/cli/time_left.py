"""`TimeLeft`: how long a run will still take, by its plan and by how fast it has been."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from clusterea.types import StageCost

PRIOR = 0.1  # of the whole plan: so much counts as done as planned, so that estimates are steady


class TimeLeft:
    """The planned seconds of the stages ahead, times the slowness of those that are done."""

    def __init__(
        self,
        stages: Iterable[tuple[str, float]] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ahead = list(stages)  # labels and planned seconds
        self._clock = clock
        self._planned = self._taken = PRIOR * sum(seconds for _, seconds in self._ahead)
        self._now: float | None = None  # planned seconds of the running stage; None: not known
        self._begun = 0.0

    def begin(self, stage: str) -> None:
        """A stage begins. Planned stages before it are done, or did not take place."""
        self._begun, self._now = self._clock(), None
        for index, (label, seconds) in enumerate(self._ahead):
            if label == stage:
                self._now = seconds
                del self._ahead[: index + 1]
                return

    def end(self, cost: StageCost) -> None:
        """A stage has ended. One whose result was stored tells nothing about speed."""
        if self._now is None:
            return
        if not cost.reused:
            self._planned += self._now
            self._taken += cost.seconds
        self._now = 0.0

    def seconds(self) -> float | None:
        """The seconds left; None if the running stage is not in the plan."""
        if self._now is None or not self._planned:
            return None
        slowness = self._taken / self._planned
        running = max(0.0, slowness * self._now - (self._clock() - self._begun))
        return running + slowness * sum(seconds for _, seconds in self._ahead)
