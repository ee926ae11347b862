"""Typer's commands and groups, with flags shown as flags and signals answered with one line."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from clusterea.cli.console import show_stopped
from clusterea.errors import Stopped

# The same command again computes only what is missing.
RESUMED = ("align", "train", "sample", "fuse", "match")


def _as_flags(params: list[Any]) -> list[Any]:
    """The parameters; the help of those that take no value shows no type such as `<bool>`."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


class Command(TyperCommand):
    """A command. Its help is folded where the terminal ends, not where the docstring is."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        paragraphs = (self.help or "").split("\n\n")
        self.help = "\n\n".join(" ".join(each.split()) for each in paragraphs)

    def get_params(self, ctx: Any) -> list[Any]:
        return _as_flags(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands. A signal ends any of them with a line and the exit code of shells."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _as_flags(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, Stopped) as stop:
            show_stopped(resumes=ctx.invoked_subcommand in RESUMED)
            code = stop.exit_code if isinstance(stop, Stopped) else 130
            raise typer.Exit(code) from None
