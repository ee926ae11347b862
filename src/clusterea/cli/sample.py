"""`clusterea sample`: splits both graphs into mini-batches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from clusterea.cli.console import OUTPUT
from clusterea.cli.locked import locks_run
from clusterea.cli.run_options import Device, Run, Seed, Settings
from clusterea.config import SamplingConfig, with_settings
from clusterea.errors import address

if TYPE_CHECKING:
    from clusterea.evaluation.overlap import Overlap
    from clusterea.types import Partition


@locks_run
def sample(
    run: Run,
    sampler: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The sampler: cmcs, iscs, iscs-reverse, vps, metis-cps or metis-cps-reverse.",
        ),
    ] = "cmcs",
    num_batches: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="Number of mini-batches; more if one is too large.",
            show_default="the run's",
        ),
    ] = None,
    max_batch: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Most entities per side; a larger mini-batch is split.",
            show_default="the run's",
        ),
    ] = None,
    classifier: Annotated[
        str | None,
        typer.Option(
            metavar="xgboost|softmax", help="Classifier of cmcs.", show_default="the run's"
        ),
    ] = None,
    settings: Settings = None,
    seed: Seed = None,
    device: Device = "auto",
) -> None:
    """Splits both graphs into mini-batches that keep equivalent entities together.

    The samplers use the seeds and the embeddings of the run, never its test links. If there are
    test links, the share that stays together is printed. Same as `align` with the settings of the
    run, changed by these options and stopped after sampling.
    """
    from clusterea.cli.progress import watcher
    from clusterea.evaluation.overlap import overlap
    from clusterea.pipeline import choose_device, load_run, run_in_folder
    from clusterea.samplers import find_sampler
    from clusterea.workspace import Workspace

    find_sampler(sampler)  # refuse an unknown name before reading the run
    asked: dict[str, Any] = {
        name: value
        for name, value in (
            *(("num_batches", num_batches), ("max_batch", max_batch)),
            *(("classifier", classifier), ("seed", seed)),
        )
        if value is not None
    }
    with_settings(SamplingConfig(**asked), settings or [], stage="sampling")  # wrong settings too
    torch_device = choose_device(device)
    before = load_run(run)
    sampling = replace(before.config.sampling, **asked)
    sampling = with_settings(sampling, settings or [], stage="sampling")
    config = replace(before.config, sampling=sampling)
    workspace = Workspace(run)
    with watcher(quiet=False, json_lines=False) as observer:
        result, _ = run_in_folder(
            workspace,
            before.named,
            config,
            torch_device,
            observer,
            until="sample",
            samplers=[sampler],
            previous=before.previous,
        )
    partition = result.partitions[sampler]
    OUTPUT.print(_sizes(partition))
    if partition.num_batches > sampling.num_batches:
        OUTPUT.print(
            f"{partition.num_batches} mini-batches: some of the {sampling.num_batches} had more "
            f"than {sampling.max_batch:,} entities of a side and were split.",
            soft_wrap=True,
        )
    _print_overlap(
        overlap(partition, result.named), has_test_links=bool(len(result.named.test_links))
    )
    path = workspace.tensors_file(result.keys[sampler])
    OUTPUT.print(f"  {escape(address(path))}", soft_wrap=True)


def _sizes(partition: Partition) -> Table:
    table = Table(box=None, header_style="bold")
    table.add_column("Mini-batches")
    for name in ("Smallest", "Mean", "Largest"):
        table.add_column(name, justify="right")
    table.add_column("Largest / mean", justify="right")
    for side, sizes in (("source", partition.sizes().source), ("target", partition.sizes().target)):
        mean = sum(sizes) / len(sizes)
        ratio = f"{max(sizes) / mean:.2f}" if mean else ""
        table.add_row(side, f"{min(sizes):,}", f"{mean:,.0f}", f"{max(sizes):,}", ratio)
    return table


def _print_overlap(found: Overlap, *, has_test_links: bool) -> None:
    """Prints the shares of links that stay together."""
    from clusterea.report.readable import percent

    if not has_test_links:
        OUTPUT.print(f"Overlap: {percent(found.seeds)} of the seeds. There are no test links.")
        return
    OUTPUT.print(
        f"Overlap: {percent(found.test)} of the test links, {percent(found.seeds)} of the seeds, "
        f"{percent(found.all)} of all ({percent(found.macro)} as the authors' release counts it).",
        soft_wrap=True,
    )
