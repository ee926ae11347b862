"""`clusterea sample`: both graphs cut into mini-batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from clusterea.cli.console import ERRORS, OUTPUT, show_warning
from clusterea.cli.locked import locks_run
from clusterea.cli.run_options import Device, Run
from clusterea.config import SamplingConfig, with_settings
from clusterea.pipeline import Artifacts, Cuts, choose_device, sample_stage
from clusterea.pipeline.stored import current_key, stored_embeddings, stored_known
from clusterea.workspace import Workspace, task_key

if TYPE_CHECKING:
    from clusterea.evaluation.overlap import Overlap
    from clusterea.types import Partition

DEFAULTS = SamplingConfig()


@locks_run
def sample(
    run: Run,
    sampler: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="cmcs, iscs, iscs-reverse, vps, metis-cps or metis-cps-reverse."
        ),
    ] = "cmcs",
    num_batches: Annotated[
        int, typer.Option(metavar="K", help="How many mini-batches; more where one is too large.")
    ] = DEFAULTS.num_batches,
    max_batch: Annotated[
        int | None,
        typer.Option(metavar="N", help="Entities of a side at most; a larger mini-batch is split."),
    ] = DEFAULTS.max_batch,
    classifier: Annotated[
        str, typer.Option(metavar="xgboost|softmax", help="Of cmcs.")
    ] = DEFAULTS.classifier,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Any setting, as --set gcn_epochs=100."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Same seed, same mini-batches.")] = 0,
    device: Device = "auto",
) -> None:
    """Cuts both graphs into mini-batches that hold equivalent entities together.

    Learned from the seeds and the embeddings of a run. Where the run has test links, it says how
    many of them stay together; no sampler sees them.
    """
    from clusterea.evaluation.overlap import overlap
    from clusterea.samplers import find_sampler

    find_sampler(sampler)  # so that an unknown one is refused before anything is read
    config = SamplingConfig(
        num_batches=num_batches,
        max_batch=max_batch,
        classifier=classifier,  # type: ignore[arg-type]  # it checks the name itself
        seed=seed,
    )
    config = with_settings(config, settings or [], stage="sampling")
    place = choose_device(device)
    workspace = Workspace(run)
    with ERRORS.status(f"Cutting into {config.num_batches} mini-batches with {sampler} …"):
        benchmark = workspace.load_benchmark()
        task = benchmark.task
        train_key = current_key(workspace, "train", task)
        artifacts = Artifacts(workspace, show_warning)
        with Cuts(artifacts, task_key(task), task) as cuts:
            key, partition = sample_stage(
                artifacts,
                train_key,
                stored_known(workspace, task, train_key),
                lambda: stored_embeddings(workspace, task, train_key),
                sampler,
                config,
                place,
                cuts,
            )
    OUTPUT.print(_sizes(partition))
    if partition.num_batches > config.num_batches:
        OUTPUT.print(
            f"{partition.num_batches} mini-batches: some of the {config.num_batches} had more than "
            f"{config.max_batch:,} entities of a side and were split.",
            soft_wrap=True,
        )
    _print_overlap(overlap(partition, benchmark), has_test_links=bool(len(benchmark.test_links)))
    OUTPUT.print(f"  {escape(str(workspace.tensors_file(key)))}", soft_wrap=True)


def _sizes(partition: Partition) -> Table:
    table = Table(box=None, header_style="bold")
    table.add_column("Mini-batches")
    for name in ("Least", "Mean", "Largest"):
        table.add_column(name, justify="right")
    table.add_column("Largest / mean", justify="right")
    for side, sizes in (("source", partition.sizes().source), ("target", partition.sizes().target)):
        mean = sum(sizes) / len(sizes)
        ratio = f"{max(sizes) / mean:.2f}" if mean else ""
        table.add_row(side, f"{min(sizes):,}", f"{mean:,.0f}", f"{max(sizes):,}", ratio)
    return table


def _print_overlap(found: Overlap, *, has_test_links: bool) -> None:
    """Shares of links that stay together."""
    from clusterea.report.readable import percent

    if not has_test_links:
        OUTPUT.print(f"Overlap: {percent(found.seeds)} of the seeds. There are no test links.")
        return
    OUTPUT.print(
        f"Overlap: {percent(found.test)} of the test links, {percent(found.seeds)} of the seeds, "
        f"{percent(found.all)} of all ({percent(found.macro)} as the authors' release counts it).",
        soft_wrap=True,
    )
