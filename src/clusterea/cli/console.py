"""Where output goes: results to standard output, everything else to standard error.

With `--json` both are JSON: standard output is one object, standard error one object per line.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

from rich.console import Console
from rich.markup import escape

OUTPUT = Console(highlight=False)
ERRORS = Console(stderr=True, highlight=False)


def wants_json() -> bool:
    """Whether `--json` was given, even if the command line is invalid."""
    return "--json" in sys.argv


def show_event(event: dict[str, Any]) -> None:
    """Writes one JSON object as a line to standard error."""
    sys.stderr.write(json.dumps(event, ensure_ascii=False) + "\n")
    sys.stderr.flush()


def show_result(result: dict[str, Any]) -> None:
    """Writes the result as one JSON object to standard output."""
    sys.stdout.write(json.dumps(result, ensure_ascii=False, indent=2) + "\n")


def show_error(message: str) -> None:
    """Prints an error on standard error, without wrapping long paths."""
    if wants_json():
        show_event({"event": "error", "message": message})
        return
    ERRORS.print(f"[bold red]error:[/bold red] {escape(message)}", soft_wrap=True)


def show_warning(message: str) -> None:
    """Prints a warning on standard error."""
    if wants_json():
        show_event({"event": "warning", "message": message})
        return
    ERRORS.print(f"[bold yellow]warning:[/bold yellow] {escape(message)}", soft_wrap=True)


def show_stopped(*, resumes: bool) -> None:
    """Says that a signal stopped the command, and whether it continues when run again."""
    if wants_json():
        show_event({"event": "stopped"})
        return
    goes_on = " Run the same command again to continue." if resumes else ""
    ERRORS.print(f"Stopped.{goes_on}", soft_wrap=True)


def show_library_warnings() -> None:
    """With `--json`, prints the warnings of libraries as JSON too."""
    if wants_json():
        warnings.showwarning = lambda message, *_, **__: show_warning(str(message))
