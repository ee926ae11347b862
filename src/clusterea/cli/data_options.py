"""The options that name the data, shared by all commands that read data."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer
from rich.markup import escape

from clusterea.cli.console import ERRORS
from clusterea.cli.locked import run_path
from clusterea.errors import InputError, shown_path
from clusterea.sizes import parse_size

if TYPE_CHECKING:
    from clusterea.types import Benchmark

# Those of `clusterea.data.FORMATS`, which is slow to import.
FORMAT_NAMES = (
    *("openea", "ids", "dbp1m"),
    *("ntriples", "turtle", "rdfxml", "nquads", "trig", "n3", "jsonld", "tsv", "csv", "parquet"),
    *("rdf", "table"),
)
_INPUT = "Data"
# Seconds after which a thread that holds Python's lock lets another one have it, by default 0.005.
# The thread that reads waits so long for the one that imports, after each step.
_SWITCH = 0.0002
Checked = TypeVar("Checked")
_NAMES = "Names and features"
_SPLIT = "Seeds and test links"


def _columns(tables: str) -> Any:
    return typer.Option(
        metavar="HEAD,RELATION,TAIL",
        help=f"Column names of {tables}.",
        rich_help_panel=_INPUT,
    )


@dataclass(frozen=True, slots=True)
class DataOptions:
    """One field per option. `load` reads the data that they name."""

    source: Annotated[
        Path,
        typer.Argument(
            parser=run_path,
            metavar="DATA",
            help="A folder (OpenEA, DBP15K/SRPRS or DBP1M layout), the source graph's file, or a "
            "run, whose data are taken.",
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
            help="Known links between two files: TSV, CSV, Parquet, SSSOM, or RDF (owl:sameAs, "
            "skos:exactMatch, …). `-` is standard input, here and for other files.",
            rich_help_panel=_INPUT,
        ),
    ] = None
    seeds: Annotated[
        Path | None,
        typer.Option(help="Instead of --links: a file of seeds.", rich_help_panel=_INPUT),
    ] = None
    test_links: Annotated[
        Path | None,
        typer.Option(help="With --seeds: a file of test links.", rich_help_panel=_INPUT),
    ] = None
    format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Detected if not given: {', '.join(FORMAT_NAMES)}.",
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
            help="Refuse files that are larger than this when unpacked.",
            rich_help_panel=_INPUT,
        ),
    ] = "64GiB"
    blank_nodes: Annotated[
        str,
        typer.Option(
            metavar="structure|drop|link",
            help="RDF blank nodes: keep them as neighbors only, drop them, or link them too.",
            rich_help_panel=_INPUT,
        ),
    ] = "structure"
    names: Annotated[
        str | None,
        typer.Option(
            metavar="auto|labels|iris|none",
            help="Which names are compared: labels, the readable part of ids or IRIs, both "
            "(auto: labels first), or none.",
            show_default="auto; none for a dataset's folder",
            rich_help_panel=_NAMES,
        ),
    ] = None
    label_property: Annotated[
        list[str] | None,
        typer.Option(
            metavar="IRI",
            help="An RDF property whose values are labels, beside the usual ones. May be repeated.",
            show_default=False,
            rich_help_panel=_NAMES,
        ),
    ] = None
    name_files: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="SOURCE TARGET",
            help="Tables of entity and name (TSV, CSV, Parquet). An entity may have several names.",
            show_default=False,
            rich_help_panel=_NAMES,
        ),
    ] = None
    features: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="SOURCE TARGET",
            help="Vectors of your own for the entities (.npy, .parquet, .safetensors).",
            show_default=False,
            rich_help_panel=_NAMES,
        ),
    ] = None
    seeds_from: Annotated[
        str | None,
        typer.Option(
            metavar="links|names|iris",
            help="Which pairs are seeds: links, equal names, identical IRIs, or several "
            "(links,iris). Without links, all links are test links.",
            show_default="links, with iris for RDF; names,iris without links",
            rich_help_panel=_SPLIT,
        ),
    ] = None
    split: Annotated[
        str | None,
        typer.Option(
            metavar="given|first|random|fold",
            help="Which links are seeds: as given by the data (all, if it gives no split), the "
            "first of the file, random ones, or the train links of a fold.",
            rich_help_panel=_SPLIT,
        ),
    ] = None
    seeds_share: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Share of links that are seeds (paper: 0.3). Without --split: the first links.",
            rich_help_panel=_SPLIT,
        ),
    ] = None
    split_seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="Random seed of --split random.", rich_help_panel=_SPLIT),
    ] = None
    fold: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Number of the fold. Implies --split fold.", rich_help_panel=_SPLIT
        ),
    ] = None

    def load(self, *, quiet: bool = False) -> Benchmark:
        """Reads the data; unless quiet, prints notes on standard error."""
        if _is_run(self.source) and self.target is None:
            return self._of_run()
        from clusterea.data import load

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
                names=self.names,
                label_properties=self.label_property or (),
                name_files=self.name_files,
                features=self.features,
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

    def load_beside(
        self, checked: Callable[[], Checked], *, quiet: bool = False
    ) -> tuple[Checked, Benchmark]:
        """The result of checks, and the data. An error of the checks comes first.

        The checks import torch, which takes seconds; meanwhile, a folder's tables are read. Reading
        of other formats can't be interrupted in another thread, and comes after the checks.
        """
        from clusterea.in_threads import in_threads

        if self.target is not None or _is_run(self.source):
            return checked(), self.load(quiet=quiet)
        steps: list[Callable[[], Any]] = [checked, functools.partial(self.load, quiet=quiet)]
        switched = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH)
        try:
            first, benchmark = in_threads(lambda step: step(), steps)
        finally:
            sys.setswitchinterval(switched)
        return first, benchmark

    def _of_run(self) -> Benchmark:
        """The data that a run has stored."""
        from clusterea.workspace import Workspace, in_folder

        for option in fields(self)[1:]:
            if getattr(self, option.name) != option.default:
                name = option.name.replace("_", "-")
                raise InputError(
                    f"--{name}: {shown_path(self.source)} is a run, with its own data."
                )
        with in_folder(self.source, None) as folder:
            return Workspace(folder).original_data()


def _is_run(source: Path | str) -> bool:
    """Whether this is a run, or will be refused as none; a folder of a dataset is none."""
    if isinstance(source, str):
        return True
    return any(source.glob("data-*/about.json")) and not any(source.glob("*triples_[12]"))


def _split(names: str | None) -> list[str] | None:
    return None if names is None else [name.strip() for name in names.split(",")]


def takes_data(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the arguments and options of its first parameter, a `DataOptions`."""
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
    """The function's parameters as keyword-only, with evaluated annotations."""
    hints = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        yield parameter.replace(
            kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[parameter.name]
        )
