"""The command line: the only place that prints."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from clusterea.cli.align import align
from clusterea.cli.console import ERRORS, show_error
from clusterea.cli.datasets import datasets
from clusterea.cli.evaluate import evaluate
from clusterea.cli.explain import explain
from clusterea.cli.export import export
from clusterea.cli.fuse import fuse
from clusterea.cli.generate import generate
from clusterea.cli.info import info
from clusterea.cli.match import match
from clusterea.cli.report import report
from clusterea.cli.sample import sample
from clusterea.cli.train import train
from clusterea.errors import InputError
from clusterea.version import __version__

__all__ = ["app", "main"]


class _Stoppable(TyperGroup):
    """Ctrl-C ends any command with a word and 130, as shells expect; nothing is left half written.

    Left to itself, click would say "Aborted" and exit with 1, which stands for a fault of ours.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ERRORS.print("Stopped.")
            raise typer.Exit(130) from None


app = typer.Typer(
    name="clusterea",
    cls=_Stoppable,
    help=(
        "Finds which entities of two knowledge graphs are the same, from the graphs' structure and "
        "a few known pairs.\n\nTry it: [bold]clusterea generate demo[/bold], then "
        "[bold]clusterea align demo --seeds-share 0.3 --out run[/bold]."
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    *(align, explain, export, report),  # for who has two graphs
    *(info, generate),
    *(train, sample, fuse, match, evaluate),  # stage by stage
):
    app.command()(command)
app.add_typer(datasets, name="datasets")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"clusterea {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say which it is."),
    ] = False,
) -> None:
    del version


def main() -> None:
    """Runs the command line: exit code 2 is the input's or the caller's fault, 1 is ours."""
    try:
        app()
    except InputError as error:
        show_error(str(error))
        sys.exit(2)
    except OSError as error:  # a full disk, a folder that may not be written to
        show_error(f"{error.filename or 'the system'}: {error.strerror or error}.")
        sys.exit(2)
