"""`clusterea align`: from two graphs and a few known pairs to an alignment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from clusterea.cli.console import ERRORS, OUTPUT, show_result, show_warning
from clusterea.cli.data_options import DataOptions, takes_data
from clusterea.cli.locked import locks_run
from clusterea.cli.run_options import MinConfidence, Out, Top
from clusterea.config import PRESETS, Config, preset
from clusterea.config.checks import check_bounds
from clusterea.config.preset import listed
from clusterea.engines import open_engine
from clusterea.errors import address as address_of
from clusterea.sizes import parse_size

if TYPE_CHECKING:
    import torch

    from clusterea.types import Alignment, AlignmentTask, Benchmark, Metrics
    from clusterea.workspace import Workspace


@locks_run
@takes_data
def align(
    data: DataOptions,
    out: Out,
    preset_name: Annotated[
        str,
        typer.Option("--preset", metavar="|".join(PRESETS), help="The preset to start from."),
    ] = "default",
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Encoders: gcn-align, rrea, dual-amn, label-propagation. Several are fused. Names "
            "are added if the data have them; `names` is names alone.",
            show_default="the preset's",
        ),
    ] = None,
    samplers: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Samplers: cmcs, iscs (in both directions), vps, metis-cps.",
            show_default="the preset's",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="STAGE.FIELD=VALUE", help="Change a setting, as in training.epochs=10."
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Random seed: same seed, same alignment.")
    ] = 0,
    device: Annotated[
        str, typer.Option(metavar="auto|cpu|cuda", help="Where to compute.")
    ] = "auto",
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Most memory to take, such as 20GiB: of the GPU, or of the host if there is none. "
            "Refused if it can't be kept.",
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="local|ray",
            help="Run on this machine or on a Ray cluster, with the same result. Models that need "
            "training are trained on this machine.",
        ),
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="The Ray cluster.",
            show_default="Ray is started on this machine",
        ),
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Parts to cut the work into. More take less memory; on one machine, parts that "
            "wait are on disk.",
        ),
    ] = None,
    decisions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Answers of a person: SSSOM from `clusterea review`, or a table of source, target "
            "and same or different.",
            show_default="decisions.sssom.tsv in --out, if there is one",
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="After new answers, learn everything again instead of going on from the last run.",
        ),
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Remove the run in --out, and start over."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
    least: MinConfidence = 0.0,
    top: Top = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print only errors and the result.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print the result or plan as JSON, and progress as JSON lines on stderr."
        ),
    ] = False,
) -> None:
    """Finds which entities of two knowledge graphs are the same.

    Trains embeddings, splits the graphs into mini-batches, fuses similarities and matches entities.
    Evaluates the result if there are test links. Run again, it computes only what is missing.
    """
    from clusterea.cli.answers import with_answers
    from clusterea.cli.plan import described_engine, one_sided_seeds, plan, shortages
    from clusterea.cli.progress import watcher
    from clusterea.cli.time_left import TimeLeft
    from clusterea.graph.common_structure import structure_problems
    from clusterea.pipeline import check_names, choose_device, find_previous, run_in_folder
    from clusterea.pipeline.cost import expected_seconds
    from clusterea.pipeline.memory import memory_limit, within
    from clusterea.workspace import Workspace, task_key

    check_bounds(least, top)
    where = described_engine(engine, shards, address)
    named = None if samplers is None else listed(samplers)
    allowed = None if memory is None else parse_size(memory)

    def configured(task: AlignmentTask | None) -> Config:
        entities = max(graph.num_entities for graph in task.graphs) if task is not None else 0

        def choose(first: Sequence[str]) -> Config:
            given = [*first, *(settings or [])]
            return preset(
                preset_name, entities, model=model, samplers=named, seed=seed, settings=given
            )

        if task is None or allowed is None:
            return choose([])
        return within(choose, task, torch_device, allowed)

    def checked() -> torch.device:
        found = choose_device(device, engine)
        check_names(configured(None))
        return found

    workspace, is_quiet = Workspace(out), quiet or as_json
    torch_device, undecided = data.load_beside(checked, quiet=is_quiet)
    of_task = task_key(undecided.task)
    if not overwrite:
        workspace.check_task(of_task)
    benchmark = with_answers(undecided, decisions, out, quiet=is_quiet)
    task = benchmark.task
    config = configured(task)
    previous = None if full or overwrite else find_previous(workspace, task, config, torch_device)
    problems = [
        *shortages(
            benchmark,
            config,
            torch_device,
            out,
            is_limited=allowed is not None,
            shards=where["shards"],
        ),
        *one_sided_seeds(benchmark),
        *structure_problems(task),
    ]
    if dry_run:
        _print_plan(benchmark, config, torch_device, allowed, where, problems, as_json=as_json)
        return
    if not is_quiet:
        ERRORS.print(plan(benchmark, config, torch_device, allowed, where), soft_wrap=True)
        if previous is not None:
            ERRORS.print(
                "Restart    warm: goes on from what the last run learned; --full starts anew"
            )
    for problem in () if quiet else problems:
        show_warning(problem)
    # A warm restart has fewer stages than the plan.
    left = TimeLeft(expected_seconds(task, config, torch_device) if previous is None else ())
    limit = memory_limit(torch_device, allowed)
    with (
        limit,
        watcher(quiet=quiet, json_lines=as_json, left=left) as observer,
        open_engine(engine, shards, address, out, observer.warn) as units,
    ):
        workspace.claim(of_task, overwrite=overwrite)
        result, metrics = run_in_folder(
            workspace,
            benchmark,
            config,
            torch_device,
            observer,
            min_confidence=least,
            top=top,
            task=of_task,
            previous=previous,
            engine=units,
        )
    if as_json:
        if not quiet and _is_only_scored(result.alignment):
            show_warning(result.alignment.confidence_note)
        show_result(_described_result(workspace, result.alignment, metrics))
    else:
        print_result(workspace.folder, result.alignment, metrics, quiet=quiet)


def _print_plan(
    benchmark: Benchmark,
    config: Config,
    device: torch.device,
    allowed: int | None,
    engine: dict[str, Any],
    problems: list[str],
    *,
    as_json: bool,
) -> None:
    from clusterea.cli.plan import described_plan, plan

    if as_json:
        described = described_plan(benchmark, config, device, allowed, engine)
        show_result({**described, "warnings": problems})
        return
    lines = [plan(benchmark, config, device, allowed, engine), *map(escape, problems)]
    OUTPUT.print("\n".join(lines), soft_wrap=True)


def _described_result(
    workspace: Workspace, alignment: Alignment, metrics: Metrics | None
) -> dict[str, Any]:
    """The result as `--json` prints it."""
    from clusterea.pipeline.outputs import described_confidence

    names = {
        "alignment": "alignment.tsv",
        "unmatched_source": "unmatched_source.tsv",
        "unmatched_target": "unmatched_target.tsv",
        "candidates": "candidates.parquet",
        "report": "report.html",
        "run": "run.json",
    }
    if metrics is not None:
        names["metrics"] = "metrics.json"
    source, target = alignment.unmatched.map(len)
    return {
        "links": len(alignment.links),
        "unmatched": {"source": source, "target": target},
        "confidence": described_confidence(alignment),
        "metrics": None if metrics is None else metrics.to_dict(),
        "files": {name: address_of(workspace.folder / file) for name, file in names.items()},
    }


def print_result(
    folder: Path, alignment: Alignment, metrics: Metrics | None, *, quiet: bool = False
) -> None:
    """Prints the number of links, what their confidence means, the metrics, and the files' paths.

    If the links only have a score, a warning says so; with `quiet`, a line of the result.
    """
    source, target = alignment.unmatched.map(len)
    OUTPUT.print(f"{len(alignment.links):,} links; {source:,} and {target:,} entities unmatched:")
    OUTPUT.print(f"  {escape(address_of(folder / 'alignment.tsv'))}", soft_wrap=True)
    if _is_only_scored(alignment) and not quiet:
        show_warning(alignment.confidence_note)
    elif len(alignment.links):
        OUTPUT.print(alignment.confidence_note, soft_wrap=True)
    if metrics is not None:
        _print_summary(metrics)
    OUTPUT.print(f"Report: {escape(address_of(folder / 'report.html'))}", soft_wrap=True)


def _is_only_scored(alignment: Alignment) -> bool:
    return len(alignment.links) > 0 and not alignment.is_calibrated


def _print_summary(metrics: Metrics) -> None:
    from clusterea.report.readable import mean_reciprocal_rank, percent

    ranked, every = metrics.test_candidates.source, metrics.all_candidates.source
    first, tenth = percent(ranked.hits[1]), percent(ranked.hits[10])
    among_all = f"{percent(every.hits[1])}, {percent(every.hits[10])}"
    OUTPUT.print(
        f"Hits@1 {first}, hits@10 {tenth}, MRR {mean_reciprocal_rank(ranked.mrr)} among the test "
        f"targets ({among_all}, {mean_reciprocal_rank(every.mrr)} among all), on "
        f"{metrics.test_links:,} test links.",
        soft_wrap=True,
    )
    if metrics.matching is not None:
        scores = metrics.matching
        precision, recall = percent(scores.precision), percent(scores.recall)
        OUTPUT.print(f"Precision {precision}, recall {recall}, F1 {percent(scores.f1)}.")
