"""`locks_run`: only one command at a time writes into a run's folder."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from clusterea.files import STANDARD_OUTPUT
from clusterea.run_lock import run_lock


def locks_run(command: Callable[..., None]) -> Callable[..., None]:
    """Makes a command hold the lock of the folder that its `out` or `run` names."""

    @functools.wraps(command)
    def locked(**values: Any) -> None:
        folder: Path | None = values.get("out") or values.get("run")
        if folder is None or values.get("dry_run") or not _can_be_locked(folder, values):
            command(**values)
            return
        with run_lock(folder, f"clusterea {command.__name__}"):
            command(**values)

    return locked


def _can_be_locked(folder: Path, values: Mapping[str, Any]) -> bool:
    """Whether this is a folder or will be one; if not, the command reports the error."""
    is_made = "out" in values and folder != STANDARD_OUTPUT and not folder.exists()
    return folder.is_dir() or is_made
