"""Decorators of commands on a run: `locks_run` for those that write it, `reads_run` for others.

They also turn the URI of a run into a local folder.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from clusterea.errors import InputError
from clusterea.files import STANDARD_OUTPUT, is_uri
from clusterea.run_lock import run_lock


def run_path(text: str) -> Path | str:
    """The run that an argument names: a folder or, as it is, a URI."""
    return text if is_uri(text) else Path(text)


def locks_run(command: Callable[..., None]) -> Callable[..., None]:
    """Makes a command hold the lock of the folder that its `out` or `run` names."""

    @functools.wraps(command)
    def locked(**values: Any) -> None:
        name = "out" if "out" in values else "run"
        writer = None if values.get("dry_run") else f"clusterea {command.__name__}"
        with _in_folder(values[name], writer) as folder:
            values[name] = folder
            if folder is None or writer is None or not _can_be_locked(folder, values):
                command(**values)
                return
            with run_lock(folder, writer):
                command(**values)

    return locked


def reads_run(command: Callable[..., None]) -> Callable[..., None]:
    """Makes a command take the URI of a run."""

    @functools.wraps(command)
    def reading(run: Path | str, **values: Any) -> None:
        with _in_folder(run, None) as folder:
            command(run=folder, **values)

    return reading


def needs_folder(command: Callable[..., None]) -> Callable[..., None]:
    """Makes a command refuse the URI of a run."""

    @functools.wraps(command)
    def refusing(run: Path | str, **values: Any) -> None:
        if isinstance(run, str):
            raise InputError(
                f"`clusterea {command.__name__}` needs a run in a folder of this machine. "
                "Copy the run from its URI, or ask by `clusterea suggest RUN --out FILE` and "
                "answer with --decisions."
            )
        command(run=run, **values)

    return refusing


def _in_folder(run: Path | str | None, writer: str | None) -> AbstractContextManager[Path | None]:
    """The run's folder; for a URI, a local copy for the time of the block."""
    if not isinstance(run, str):
        return nullcontext(run)
    from clusterea.workspace import in_folder

    return in_folder(run, writer)


def _can_be_locked(folder: Path, values: Mapping[str, Any]) -> bool:
    """Whether this is a folder or will be one; if not, the command reports the error."""
    is_made = "out" in values and folder != STANDARD_OUTPUT and not folder.exists()
    return folder.is_dir() or is_made
