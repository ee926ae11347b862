"""`clusterea review`: asks a person about the links of a run, on a page in the browser."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from clusterea.cli.console import ERRORS, OUTPUT
from clusterea.cli.locked import needs_folder
from clusterea.cli.run_options import Run
from clusterea.errors import InputError, Stopped

if TYPE_CHECKING:
    from clusterea.data.decisions import ReadAnswers


@needs_folder
def review(
    run: Run,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=65535,
            help="The port of the page.",
            show_default="the last one, or a free one",
        ),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the page's address.")
    ] = False,
    blind: Annotated[
        bool, typer.Option("--blind", help="Show what the run found only after the answer.")
    ] = False,
    author: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Who answers.", show_default="your user name"),
    ] = None,
    import_from: Annotated[
        Path | None,
        typer.Option(
            "--import",
            metavar="FILE",
            help="Add the answers in a file to those of the run, and end.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Asks which links are right, on a page in the browser.

    The answers are kept in the run's folder, in decisions.sssom.tsv. Align again with the same
    arguments, and accepted pairs become seeds, and rejected pairs are not linked.
    """
    if import_from is not None:
        _import(run, import_from)
        return
    _check_installed()
    from clusterea.review.server import application, bound, remember, remembered, serve
    from clusterea.review.session import open_session
    from clusterea.workspace import DECISIONS

    session = open_session(run, author=author, blind=blind)
    before, token = remembered(run)
    place = bound(port, before)
    number = place.getsockname()[1]
    remember(run, number, token)
    address = f"http://127.0.0.1:{number}/?token={token}"
    OUTPUT.print(address, soft_wrap=True)
    ERRORS.print("Answer in the browser. Ctrl-C ends the command.", soft_wrap=True)
    if not no_browser:
        _open(address)
    try:
        serve(application(session, token, run=shlex.quote(str(run))), place)
    except (KeyboardInterrupt, Stopped) as stop:
        raise typer.Exit(stop.exit_code if isinstance(stop, Stopped) else 130) from None
    finally:
        answered, path = session.progress()["answered"], escape(str(run / DECISIONS))
        ERRORS.print(f"Answers in {path}: {answered:,}.", soft_wrap=True)


def _check_installed() -> None:
    try:
        import starlette
        import uvicorn
    except ImportError as error:
        raise InputError(
            "the page needs two more packages: pip install 'clusterea[review]'."
        ) from error
    del starlette, uvicorn


def _open(address: str) -> None:
    """Opens the address in a browser with windows; one in the terminal would hide the address."""
    import webbrowser

    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    if type(browser) is not webbrowser.GenericBrowser:
        browser.open(address)


def _import(run: Path, file: Path) -> None:
    from clusterea.data.decisions import read_answers
    from clusterea.pipeline import load_run
    from clusterea.review.log import DecisionLog
    from clusterea.workspace import DECISIONS

    named = load_run(run).named
    path = run / DECISIONS
    if path.exists() and file.exists() and path.samefile(file):
        raise InputError(f"--import must name another file than {path}.")
    read = read_answers(file, named.names)
    DecisionLog(path, named.names, named.labels).append(*read.answers)
    OUTPUT.print(f"{escape(str(path))}: {_told(read)}", soft_wrap=True)


def _told(read: ReadAnswers) -> str:
    added = len(read.answers)
    parts = [f"{added:,} {'answer' if added == 1 else 'answers'} added"]
    if read.unknown:
        parts.append(f"{read.unknown:,} left out, of entities that are not in the graphs")
    if read.other:
        parts.append(f"{read.other:,} left out that say nothing about sameness")
    return f"{'; '.join(parts)}."
