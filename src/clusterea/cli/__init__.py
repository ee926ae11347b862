"""The command line: the only place that prints."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from clusterea.cli.align import align
from clusterea.cli.console import (
    show_error,
    show_library_warnings,
    show_stopped,
    wants_json,
)
from clusterea.cli.datasets import datasets
from clusterea.cli.evaluate import evaluate
from clusterea.cli.explain import explain
from clusterea.cli.export import export
from clusterea.cli.fuse import fuse
from clusterea.cli.generate import generate
from clusterea.cli.info import info
from clusterea.cli.match import match
from clusterea.cli.report import report
from clusterea.cli.review import review
from clusterea.cli.sample import sample
from clusterea.cli.suggest import suggest
from clusterea.cli.train import train
from clusterea.cli.typed import Command, Group
from clusterea.errors import InputError, Stopped
from clusterea.version import __version__

__all__ = ["app", "main"]


# The base class of Typer's usage errors, which Typer does not export.
_UsageError: type[Any] = next(
    each for each in typer.BadParameter.__mro__ if each.__name__ == "ClickException"
)

app = typer.Typer(
    name="clusterea",
    cls=Group,
    help=(
        "Finds which entities of two knowledge graphs are the same, from the graphs' structure and "
        "a few known pairs.\n\nTry it: [bold]clusterea generate demo[/bold], then "
        "[bold]clusterea align demo --seeds-share 0.3 --out run[/bold]."
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    *(align, explain, suggest, review, export, report),  # align two graphs and use the result
    *(info, generate),
    *(train, sample, fuse, match, evaluate),  # stage by stage
):
    app.command(cls=Command)(command)
app.add_typer(datasets, name="datasets")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"clusterea {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    del version


def main() -> None:
    """Runs the command line. Exit code 2 means wrong input or usage, 1 a bug."""
    show_library_warnings()
    try:
        if wants_json():
            sys.exit(_run_with_json_errors())
        app(prog_name="clusterea")
    except InputError as error:
        show_error(str(error))
        sys.exit(2)
    except OSError as error:  # such as a full disk or a read-only folder
        show_error(f"{error.filename or 'the system'}: {error.strerror or error}.")
        sys.exit(2)
    except Stopped as stop:  # before a command started
        show_stopped(resumes=False)
        sys.exit(stop.exit_code)


def _run_with_json_errors() -> int:
    """Runs the command, prints usage errors as JSON, and returns the exit code."""
    try:
        return int(app(prog_name="clusterea", standalone_mode=False) or 0)
    except _UsageError as error:
        show_error(error.format_message())
        return int(error.exit_code)
