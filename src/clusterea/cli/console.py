"""Where output goes: results to standard output, everything else to standard error.

With `--json` both are JSON: standard output is one object, standard error one object a line.
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
    """Whether the caller asked for JSON, also where the command line can't be parsed."""
    return "--json" in sys.argv


def show_event(event: dict[str, Any]) -> None:
    """One JSON object as a line on standard error."""
    sys.stderr.write(json.dumps(event, ensure_ascii=False) + "\n")
    sys.stderr.flush()


def show_result(result: dict[str, Any]) -> None:
    """The command's result as one JSON object on standard output."""
    sys.stdout.write(json.dumps(result, ensure_ascii=False, indent=2) + "\n")


def show_error(message: str) -> None:
    """One clear sentence on standard error, never folded in the middle of a path."""
    if wants_json():
        show_event({"event": "error", "message": message})
        return
    ERRORS.print(f"[bold red]error:[/bold red] {escape(message)}", soft_wrap=True)


def show_warning(message: str) -> None:
    """One sentence on standard error about what the caller should know."""
    if wants_json():
        show_event({"event": "warning", "message": message})
        return
    ERRORS.print(f"[bold yellow]warning:[/bold yellow] {escape(message)}", soft_wrap=True)


def show_stopped(*, resumes: bool) -> None:
    """Says that a signal ended the command, and whether the same one goes on from there."""
    if wants_json():
        show_event({"event": "stopped"})
        return
    goes_on = " The same command goes on where this one was." if resumes else ""
    ERRORS.print(f"Stopped.{goes_on}", soft_wrap=True)


def show_library_warnings() -> None:
    """With `--json`, what libraries warn of is JSON as well."""
    if wants_json():
        warnings.showwarning = lambda message, *_, **__: show_warning(str(message))
