"""The command line in processes that can be killed, forked from one that has torch loaded already.

A new interpreter takes three seconds to import everything that `align` needs; a fork takes none.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import TextIO

FOLDER = "(folder)"
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    [
        *("torch", "torch._dynamo", "bokeh.embed", "bokeh.plotting", "pyarrow.parquet"),
        *("clusterea.cli", "clusterea.cli.answers", "clusterea.cli.plan", "clusterea.cli.progress"),
        *("clusterea.training", "clusterea.models", "clusterea.samplers", "clusterea.fusion"),
        *("clusterea.matching", "clusterea.evaluation.overlap", "clusterea.pipeline"),
        *("clusterea.report", "clusterea.export"),
    ]
)


class Forked:
    """A command that runs beside the test; `err` are the lines it says on standard error."""

    def __init__(
        self, place: Path, *arguments: str | Path, die_in: tuple[str, str] | None = None
    ) -> None:
        """Starts it.

        Args:
            place: A folder for a pipe.
            arguments: Of `clusterea`.
            die_in: What a path must contain and how it must end, or `FOLDER`: it is killed in the
                middle of writing that.
        """
        pipe = place / f"err-{len(list(place.glob('err-*')))}"
        os.mkfifo(pipe)
        self._process: ForkServerProcess = _context.Process(
            target=_run, args=([str(each) for each in arguments], str(pipe), die_in)
        )
        self._process.start()
        self.err: TextIO = pipe.open()

    def send(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def wait(self) -> int:
        """Its exit code, negative where a signal ended it."""
        self.err.close()
        self._process.join()
        code = self._process.exitcode
        self._process.close()
        assert code is not None
        return code

    def finish(self) -> tuple[int, str]:
        """Its exit code, and the rest of what it says."""
        said = self.err.read()
        return self.wait(), said


def _run(arguments: list[str], pipe: str, die_in: tuple[str, str] | None) -> None:
    from clusterea.cli import main

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(pipe, os.O_WRONLY), 2)
    if die_in is not None:
        _die_in(*die_in)
    sys.argv = ["clusterea", *arguments]
    main()


def _die_in(part: str, end: str) -> None:
    """Has this process killed when what it wrote beside its place is about to take it.

    A file is cut in half before, as if more of it had still been to come.
    """
    replace, rename = Path.replace, Path.rename

    def killed_replace(self: Path, target: str | Path) -> Path:
        if end != FOLDER and part in str(target) and str(target).endswith(end):
            os.truncate(self, self.stat().st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        return replace(self, target)

    def killed_rename(self: Path, target: str | Path) -> Path:
        if end == FOLDER and part in str(target):
            os.kill(os.getpid(), signal.SIGKILL)
        return rename(self, target)

    Path.replace = killed_replace  # type: ignore[method-assign,assignment]
    Path.rename = killed_rename  # type: ignore[method-assign,assignment]
