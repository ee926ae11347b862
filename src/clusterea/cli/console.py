"""Where output goes: results to standard output, everything else to standard error."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

OUTPUT = Console(highlight=False)
ERRORS = Console(stderr=True, highlight=False)


def show_error(message: str) -> None:
    """One clear sentence on standard error, never folded in the middle of a path."""
    ERRORS.print(f"[bold red]error:[/bold red] {escape(message)}", soft_wrap=True)


def show_warning(message: str) -> None:
    """One sentence on standard error about something that was dealt with."""
    ERRORS.print(f"[bold yellow]warning:[/bold yellow] {escape(message)}", soft_wrap=True)
