"""Typer's commands and groups, with shorter help of flags and one line at a signal."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from clusterea.cli.console import show_stopped
from clusterea.errors import Stopped

# Commands that continue when they are run again.
RESUMED = ("align", "train", "sample", "fuse", "match")


def _as_flags(params: list[Any]) -> list[Any]:
    """The parameters, without a type such as `<bool>` in the help of flags."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


class Command(TyperCommand):
    """A command whose help wraps at the width of the terminal, not as the docstring does."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        paragraphs = (self.help or "").split("\n\n")
        self.help = "\n\n".join(" ".join(each.split()) for each in paragraphs)

    def get_params(self, ctx: Any) -> list[Any]:
        return _as_flags(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands. A signal ends a command with one line and the exit code of shells."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _as_flags(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, Stopped) as stop:
            show_stopped(resumes=ctx.invoked_subcommand in RESUMED)
            code = stop.exit_code if isinstance(stop, Stopped) else 130
            raise typer.Exit(code) from None
