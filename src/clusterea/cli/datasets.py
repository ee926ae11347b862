"""`clusterea datasets`: public benchmark data, by name."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from clusterea.cli.console import ERRORS, OUTPUT
from clusterea.cli.typed import Command, Group

datasets = typer.Typer(
    cls=Group,
    help="Lists and fetches public benchmark data.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@datasets.command("list", cls=Command)
def list_datasets() -> None:
    """Lists the datasets, and shows which are downloaded."""
    from clusterea.data.datasets import DATASETS, is_fetched

    table = Table()
    table.add_column("name")
    table.add_column("what it is")
    table.add_column("fetched")
    for name, dataset in DATASETS.items():
        table.add_row(name, dataset.description, "yes" if is_fetched(name) else "")
    OUTPUT.print(table)


@datasets.command("fetch", cls=Command)
def fetch_dataset(
    name: Annotated[str, typer.Argument(help="A name from `datasets list`.")],
    mirror: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Another URL of the same archive."),
    ] = None,
) -> None:
    """Downloads a dataset into the cache folder, verifies it, and prints its path.

    The environment variable CLUSTEREA_CACHE sets another cache folder.
    """
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    from clusterea.data.datasets import fetch

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=ERRORS,
    )
    with bar:
        task = bar.add_task(f"Fetching {escape(name)}", total=None)
        folder = fetch(
            name,
            url=mirror,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    OUTPUT.print(escape(str(folder)), soft_wrap=True)
