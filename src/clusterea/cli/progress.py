"""Progress on standard error: live bars, log lines, or JSON."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.text import Text

from clusterea.cli.console import ERRORS, show_event, show_warning
from clusterea.cli.time_left import TimeLeft
from clusterea.files import readable_size
from clusterea.pipeline import Silent
from clusterea.types import StageCost

LOG_EVERY = 15.0  # seconds between two log lines of one stage


class Watcher(Silent):
    """An observer that is a context manager."""

    def __enter__(self) -> Watcher:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


class _HowFar(ProgressColumn):
    """The step, count, speed and time left of a stage, and that of the run; at the end its cost.

    All in one column: several columns would leave wide gaps.
    """

    def __init__(self, left: Callable[[], float | None]) -> None:
        super().__init__()
        self._left = left

    def render(self, task: Task) -> Text:
        what = str(task.fields["what"])
        if task.finished:
            return Text(what)
        left = self._left()
        of_run = [] if left is None else [f"{_clock(left)} left of the run"]
        if task.total is None:
            return Text(", ".join([*filter(None, [what]), *of_run]))
        count = f"{task.completed:,.0f} of {task.total:,.0f}"
        parts = [what] if what.endswith(f" {count}") else [what, count]
        if task.speed:
            speed = task.speed
            parts.append(f"{speed:,.1f} per second" if speed < 100 else f"{speed:,.0f} per second")
        if task.time_remaining is not None:
            parts.append(f"{_clock(task.time_remaining)} left")
        return Text(", ".join(parts + of_run))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class Bars(Watcher):
    """One live line per stage, with a bar, the speed and the time left."""

    def __init__(self, left: TimeLeft | None = None) -> None:
        self._left = left or TimeLeft()
        self._bars = Progress(
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.fields[stage]:<22}"),
            BarColumn(bar_width=16),
            _HowFar(self._left.seconds),
            console=ERRORS,
        )
        self._task: Any = None

    def __enter__(self) -> Bars:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def begin(self, stage: str) -> None:
        self._left.begin(stage)
        self._task = self._bars.add_task("", total=None, stage=stage, what="")

    def step(self, stage: str, what: str, done: int, total: int) -> None:
        self._bars.update(self._task, completed=done, total=total, what=what)

    def end(self, cost: StageCost) -> None:
        self._left.end(cost)
        self._bars.update(self._task, completed=1, total=1, what=_costs(cost))

    def warn(self, message: str) -> None:
        show_warning(message)


class Log(Watcher):
    """A few plain lines, for files and pipes."""

    def __init__(self) -> None:
        self._last = 0.0

    def begin(self, stage: str) -> None:
        self._last = time.monotonic()

    def step(self, stage: str, what: str, done: int, total: int) -> None:
        if time.monotonic() - self._last >= LOG_EVERY:
            self._last = time.monotonic()
            ERRORS.print(f"{stage}: {what}, {done:,} of {total:,}", soft_wrap=True)

    def end(self, cost: StageCost) -> None:
        ERRORS.print(f"{cost.stage}: {_costs(cost)}", soft_wrap=True)

    def warn(self, message: str) -> None:
        show_warning(message)


class JsonLines(Watcher):
    """One JSON object per line on standard error."""

    def __init__(self, left: TimeLeft | None = None) -> None:
        self._left = left or TimeLeft()

    def begin(self, stage: str) -> None:
        self._left.begin(stage)
        left = self._left.seconds()
        known = {} if left is None else {"seconds_left": round(left, 1)}
        show_event({"event": "begin", "stage": stage, **known})

    def step(self, stage: str, what: str, done: int, total: int) -> None:
        show_event({"event": "step", "stage": stage, "what": what, "done": done, "total": total})

    def end(self, cost: StageCost) -> None:
        self._left.end(cost)
        show_event({"event": "end", **cost.to_dict()})

    def warn(self, message: str) -> None:
        show_warning(message)


def watcher(*, quiet: bool, json_lines: bool, left: TimeLeft | None = None) -> Watcher:
    """The observer for the options, and for standard error being a terminal or not.

    Args:
        quiet: Whether nothing is shown.
        json_lines: Whether events are shown as JSON.
        left: What tells how long the run will still take, if it has a plan.
    """
    if json_lines:
        return JsonLines(left)
    if quiet:
        return Watcher()
    return Bars(left) if ERRORS.is_terminal else Log()


def _costs(cost: StageCost) -> str:
    if cost.reused:
        return "reused"
    gpu = f", {readable_size(cost.peak_gpu_bytes)} on the GPU" if cost.peak_gpu_bytes else ""
    return f"{cost.seconds:.1f} s, {readable_size(cost.peak_host_bytes or 0)}{gpu}"
