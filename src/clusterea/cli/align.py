"""`clusterea align`: from two graphs and a few known pairs to an alignment."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from clusterea.cli.console import ERRORS, OUTPUT
from clusterea.cli.data_options import DataOptions, takes_data
from clusterea.cli.locked import locks_run
from clusterea.cli.plan import plan
from clusterea.cli.progress import watcher
from clusterea.config import PRESETS, Config, preset
from clusterea.config.preset import listed
from clusterea.pipeline import align as run_align
from clusterea.pipeline import choose_device
from clusterea.pipeline.align import check_names
from clusterea.pipeline.memory import largest_batch, limit_memory, parse_size
from clusterea.pipeline.outputs import write_outputs
from clusterea.workspace import Workspace, task_key

if TYPE_CHECKING:
    from clusterea.types import AlignmentTask, Benchmark, Metrics


@locks_run
@takes_data
def align(
    data: DataOptions,
    out: Annotated[Path, typer.Option(help="The run's folder.", show_default=False)],
    preset_name: Annotated[
        str,
        typer.Option("--preset", metavar="|".join(PRESETS), help="The settings to begin with."),
    ] = "default",
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Other encoders: gcn-align, rrea, dual-amn, label-propagation. Several are fused.",
        ),
    ] = None,
    samplers: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…", help="Other samplers: cmcs, iscs (both ways), vps, metis-cps."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="STAGE.FIELD=VALUE", help="Any setting, as training.epochs=10."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Same seed, same alignment.")] = 0,
    device: Annotated[
        str, typer.Option(metavar="auto|cpu|cuda", help="Where to compute.")
    ] = "auto",
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="At most so much, as 20GiB: of the GPU, or of the host without."
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Remove the run that --out holds, and begin anew."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Errors and the result alone.")] = False,
    json_lines: Annotated[
        bool, typer.Option("--json", help="Progress as JSON lines on standard error.")
    ] = False,
) -> None:
    """Finds which entities of two knowledge graphs are the same.

    Trains, cuts into mini-batches, fuses, matches and, where there are test links, evaluates. The
    same command again computes only what is missing.
    """
    place = choose_device(device)
    named = None if samplers is None else listed(samplers)
    allowed = None if memory is None else parse_size(memory)

    def configured(task: AlignmentTask | None) -> Config:
        entities = max(graph.num_entities for graph in task.graphs) if task is not None else 0
        choose = partial(preset, preset_name, entities, model=model, samplers=named, seed=seed)
        config = choose(settings=settings or [])
        if allowed is None:
            return config
        bound = f"sampling.max_batch={largest_batch(allowed, place, config, task)}"
        return choose(settings=[bound, *(settings or [])])

    check_names(configured(None))  # so that a wrong one is refused before anything is read
    workspace = Workspace(out)
    benchmark = data.load(quiet=quiet or json_lines)
    task = benchmark.task
    config = configured(task)
    of_task = task_key(task)
    if not overwrite:
        workspace.check_task(of_task)
    planned = plan(benchmark, config, place, allowed, out)
    if dry_run:
        OUTPUT.print(planned, soft_wrap=True)
        return
    watching = watcher(quiet=quiet, json_lines=json_lines)
    try:
        if not (quiet or json_lines):
            ERRORS.print(planned, soft_wrap=True)
        if allowed is not None:
            limit_memory(place, allowed)
        with watching as observer:
            workspace.claim(of_task, overwrite=overwrite)
            workspace.save_benchmark(benchmark, observer.warn)
            result = run_align(task, config, place, workspace=workspace, observer=observer)
            metrics = write_outputs(workspace, benchmark, result, place, observer)
    except KeyboardInterrupt:
        watching.stopped()
        raise typer.Exit(130) from None
    _print_result(workspace, benchmark, len(result.alignment.links), metrics)


def _print_result(
    workspace: Workspace, benchmark: Benchmark, links: int, metrics: Metrics | None
) -> None:
    OUTPUT.print(f"{links:,} links:")
    OUTPUT.print(f"  {escape(str(workspace.folder / 'alignment.tsv'))}", soft_wrap=True)
    if metrics is not None:
        ranked, every = metrics.test_candidates.source, metrics.all_candidates.source
        OUTPUT.print(
            f"Hits@1 {ranked.hits[1]:.1%}, hits@10 {ranked.hits[10]:.1%}, MRR {ranked.mrr:.3f} "
            f"among the test targets ({every.hits[1]:.1%}, {every.hits[10]:.1%}, {every.mrr:.3f} "
            f"among all), on {len(benchmark.test_links):,} test links.",
            soft_wrap=True,
        )
        if metrics.matching is not None:
            scores = metrics.matching
            OUTPUT.print(
                f"Precision {scores.precision:.1%}, recall {scores.recall:.1%}, F1 {scores.f1:.1%}."
            )
    OUTPUT.print(f"Report: {escape(str(workspace.folder / 'report.html'))}", soft_wrap=True)
