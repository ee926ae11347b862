"""The options that say where data comes from, the same for every command that reads some."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.markup import escape

from clusterea.cli.console import ERRORS
from clusterea.data import FORMATS, load
from clusterea.errors import shown_path
from clusterea.sizes import parse_size
from clusterea.types import Benchmark

_INPUT = "Data"
_SPLIT = "Seeds and test links"


def _columns(tables: str) -> Any:
    return typer.Option(
        metavar="HEAD,RELATION,TAIL",
        help=f"Which columns of {tables} these are.",
        rich_help_panel=_INPUT,
    )


@dataclass(frozen=True, slots=True)
class DataOptions:
    """One field an option; `load` reads what they name."""

    source: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="A folder (OpenEA, DBP15K/SRPRS or DBP1M layout), or the source graph's file.",
            show_default=False,
        ),
    ]
    target: Annotated[
        Path | None,
        typer.Argument(metavar="TARGET", help="The target graph's file.", show_default=False),
    ] = None
    links: Annotated[
        Path | None,
        typer.Option(
            help="Known links of two files: TSV, CSV, Parquet, SSSOM, or RDF (owl:sameAs, "
            "skos:exactMatch, …). A `-` here, or for any other file, is standard input.",
            rich_help_panel=_INPUT,
        ),
    ] = None
    seeds: Annotated[
        Path | None,
        typer.Option(help="Instead of --links: the seeds alone.", rich_help_panel=_INPUT),
    ] = None
    test_links: Annotated[
        Path | None,
        typer.Option(help="With --seeds: the links to judge by.", rich_help_panel=_INPUT),
    ] = None
    format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Told from the files unless given: {', '.join(FORMATS)}.",
            rich_help_panel=_INPUT,
        ),
    ] = None
    columns: Annotated[str | None, _columns("both tables")] = None
    source_columns: Annotated[str | None, _columns("the source's table")] = None
    target_columns: Annotated[str | None, _columns("the target's table")] = None
    max_input_size: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Refuse a file that is larger than this once unpacked.",
            rich_help_panel=_INPUT,
        ),
    ] = "64GiB"
    blank_nodes: Annotated[
        str,
        typer.Option(
            metavar="structure|drop|link",
            help="RDF's blank nodes: neighbors that are never linked, left out, or linked too.",
            rich_help_panel=_INPUT,
        ),
    ] = "structure"
    seeds_from: Annotated[
        str | None,
        typer.Option(
            metavar="links|iris",
            help="Which pairs are known: the links, entities with identical IRIs, or both, as "
            "links,iris.",
            show_default="links,iris for RDF, else links",
            rich_help_panel=_SPLIT,
        ),
    ] = None
    split: Annotated[
        str | None,
        typer.Option(
            metavar="given|first|random|fold",
            help="Which links are seeds: those the data says (all, where it says nothing), the "
            "first of the file, random ones, or a fold's train links.",
            rich_help_panel=_SPLIT,
        ),
    ] = None
    seeds_share: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Share of links that are seeds, 0.3 in the paper. Alone it means --split first.",
            rich_help_panel=_SPLIT,
        ),
    ] = None
    split_seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="Seed of --split random.", rich_help_panel=_SPLIT),
    ] = None
    fold: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Which fold. Alone it means --split fold.", rich_help_panel=_SPLIT
        ),
    ] = None

    def load(self, *, quiet: bool = False) -> Benchmark:
        """The data that the options name, with a word on standard error while it is read."""
        largest = parse_size(self.max_input_size, "--max-input-size")
        name = escape(shown_path(self.source))
        with nullcontext() if quiet else ERRORS.status(f"Reading {name} …"):
            benchmark = load(
                self.source,
                self.target,
                links=self.links,
                seeds=self.seeds,
                test_links=self.test_links,
                format=self.format,
                seeds_from=self.seeds_from,
                blank_nodes=self.blank_nodes,
                columns=_split(self.columns),
                source_columns=_split(self.source_columns),
                target_columns=_split(self.target_columns),
                max_input_size=largest,
                split=self.split,
                seeds_share=self.seeds_share,
                split_seed=self.split_seed,
                fold=self.fold,
            )
        for told in () if quiet else benchmark.notes:
            ERRORS.print(escape(told), soft_wrap=True)
        return benchmark


def _split(names: str | None) -> list[str] | None:
    return None if names is None else [name.strip() for name in names.split(",")]


def takes_data(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose first parameter, a `DataOptions`, is spelled out as arguments and options."""
    names = [field.name for field in fields(DataOptions)]

    def spelled_out(**values: Any) -> None:
        command(DataOptions(**{name: values.pop(name) for name in names}), **values)

    functools.update_wrapper(spelled_out, command)
    own = list(_parameters(command))[1:]
    spelled_out.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*_parameters(DataOptions), *own]
    )
    return spelled_out


def _parameters(function: Callable[..., object]) -> Iterator[inspect.Parameter]:
    """The function's parameters by keyword, their annotations evaluated."""
    hints = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        yield parameter.replace(
            kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[parameter.name]
        )
