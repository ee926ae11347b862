"""The errors this package raises on purpose.

An `InputError` is the caller's or the data's fault: the command line prints its one sentence and
exits with 2. Whatever else escapes is ours, and exits with 1.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

Value = TypeVar("Value")


class ClusterEAError(Exception):
    """Anything this package raises on purpose."""


class InputError(ClusterEAError, ValueError):
    """What was given can't be used; the message says what was wanted, what came, what to do."""


class DataError(InputError):
    """A file can't be used; the message opens with the file and, where there is one, the line."""

    def __init__(self, path: Path | str, problem: str, *, line: int | None = None) -> None:
        self.path = Path(path)
        self.line = line
        where = f"{path} line {line}" if line is not None else f"{path}"
        super().__init__(
            f"{where}: {' '.join(problem.split())}"
        )  # one line, whatever a parser said


class DamagedError(DataError):
    """A file of a run is missing, or is not as it was written."""


class DownloadError(InputError):
    """A download can't be had or can't be trusted."""


def look_up(kind: str, name: str, known: Mapping[str, Value]) -> Value:
    """What is registered as `name`; an unknown name is answered with the known ones."""
    if name not in known:
        raise unknown_name(kind, name, known)
    return known[name]


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """The one answer to a name that isn't registered: the known ones, and the nearest of them."""
    choices = list(known)
    message = f"unknown {kind} '{name}'; choose one of {', '.join(choices)}."
    nearest = difflib.get_close_matches(name, choices, n=1)
    if nearest:
        message += f" Did you mean '{nearest[0]}'?"
    return InputError(message)
