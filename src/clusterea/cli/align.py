"""`clusterea align`: from two graphs and a few known pairs to an alignment."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from clusterea.cli.console import ERRORS, OUTPUT
from clusterea.cli.data_options import DataOptions, takes_data
from clusterea.cli.progress import size, watcher
from clusterea.config import LABEL_PROPAGATION, PRESETS, Config, PropagationConfig, preset
from clusterea.config.preset import listed
from clusterea.pipeline import align as run_align
from clusterea.pipeline import choose_device
from clusterea.pipeline.encoding import num_held_out
from clusterea.pipeline.memory import available, expected_memory, largest_batch, parse_size
from clusterea.pipeline.outputs import write_outputs
from clusterea.workspace import Workspace

if TYPE_CHECKING:
    import torch

    from clusterea.types import AlignmentTask, Benchmark, Metrics


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

    _check_names(configured(None))  # so that a wrong one is refused before anything is read
    workspace = Workspace(out)
    benchmark = data.load(quiet=quiet or json_lines)
    task = benchmark.task
    config = configured(task)
    plan = _plan(benchmark, config, place, allowed)
    if dry_run:
        OUTPUT.print(plan, soft_wrap=True)
        return
    watching = watcher(quiet=quiet, json_lines=json_lines)
    try:
        if not (quiet or json_lines):
            ERRORS.print(plan, soft_wrap=True)
        _limit(place, allowed)
        workspace.save_benchmark(benchmark)
        with watching as observer:
            result = run_align(task, config, place, workspace=workspace, observer=observer)
            metrics = write_outputs(workspace, benchmark, result, place, observer)
    except KeyboardInterrupt:
        watching.stopped()
        raise typer.Exit(130) from None
    _print_result(workspace, benchmark, len(result.alignment.links), metrics)


def _check_names(config: Config) -> None:
    from clusterea.models import check_model
    from clusterea.samplers import find_sampler

    for model in config.models:
        check_model(model)
    for sampler in config.samplers:
        find_sampler(sampler)


def _limit(place: torch.device, allowed: int | None) -> None:
    """Has the GPU's allocator refuse what is beyond the memory allowed."""
    if allowed is not None and place.type == "cuda":
        import torch

        total = torch.cuda.mem_get_info(place)[1]
        torch.cuda.set_per_process_memory_fraction(min(1.0, allowed / total), place)


def _plan(benchmark: Benchmark, config: Config, place: torch.device, allowed: int | None) -> str:
    task, sampling, fusion = benchmark.task, config.sampling, config.fusion
    source, target = task.graphs
    expected = expected_memory(task, config, place)
    lines = [
        f"{source.num_entities:,} and {target.num_entities:,} entities, "
        f"{source.num_triples:,} and {target.num_triples:,} triples, "
        f"{task.num_seeds:,} seeds, {len(benchmark.test_links):,} test links.",
        f"Encoding   {_encoders(config)}, on {place}",
    ]
    if config.samplers:
        lines.append(
            f"Sampling   {', '.join(config.samplers)}: {sampling.num_batches:,} mini-batches"
            + (" each" if len(config.samplers) > 1 else "")
        )
    else:
        lines.append("Sampling   none: all entities at once")
    in_batches = (bool(config.samplers) and fusion.sinkhorn) or fusion.global_sinkhorn
    normalized = f"Sinkhorn of {fusion.sinkhorn_rounds} rounds, " if in_batches else ""
    lines += [
        f"Fusion     {normalized}{fusion.candidates} candidates an entity, {fusion.search} search",
        *_rounds(config),
        f"Matching   {config.matching.method}{_calibration(task, config)}",
        f"Expected   {_memory(expected.host, expected.gpu)}, {_time(task, config, place)}",
    ]
    needed = expected.gpu if place.type == "cuda" else expected.host
    free = allowed or available(place)
    if free is not None and needed > free:
        lines.append(f"This may not fit into {size(free)}. {_advice(task, config, place, free)}")
    return escape("\n".join(lines))


def _encoders(config: Config) -> str:
    return " and ".join(
        each.model if isinstance(each, PropagationConfig) else f"{each.model}, {each.epochs} epochs"
        for each in config.encoders()
    )


def _rounds(config: Config) -> list[str]:
    rounds = config.self_training.rounds
    return [f"Rounds     {rounds} of self-training at most"] if rounds else []


def _calibration(task: AlignmentTask, config: Config) -> str:
    count = num_held_out(task.num_seeds, config.matching.held_out)
    return f"; {count:,} seeds held out for its confidence" if count else ""


def _advice(task: AlignmentTask, config: Config, place: torch.device, free: int) -> str:
    """The setting that makes it fit, the one that costs least accuracy first."""

    def fits(changed: Config) -> bool:
        needed = expected_memory(task, changed, place)
        return (needed.gpu if place.type == "cuda" else needed.host) <= free

    for entities in (50_000, 20_000, 10_000, 5_000, 2_000, 1_000) if config.samplers else ():
        if entities >= (config.sampling.max_batch or entities + 1):
            continue
        if fits(replace(config, sampling=replace(config.sampling, max_batch=entities))):
            return f"Smaller mini-batches would: --set sampling.max_batch={entities}."
    for features in (1024, 512, 256) if LABEL_PROPAGATION in config.models else ():
        if features >= config.propagation.features:
            continue
        if fits(replace(config, propagation=replace(config.propagation, features=features))):
            return f"Smaller embeddings would: --set propagation.features={features}."
    for dimension in (100, 64, 32, 16):
        if dimension >= config.training.dimension:
            continue
        if fits(replace(config, training=replace(config.training, dimension=dimension))):
            return f"Smaller embeddings would: --set training.dimension={dimension}."
    return "No setting makes these graphs fit; it takes a machine with more memory."


def _memory(host: int, gpu: int) -> str:
    return f"{size(host)} of memory" + (f" and {size(gpu)} on the GPU" if gpu else "")


# Seconds for a step of training at a row touched, for labels and for all else at an entity;
# measured on two CPU cores and on one H200. Rough: other machines differ by a factor of a few.
SECONDS_A_ROW = {"cpu": 8e-5, "cuda": 4e-8}
SECONDS_A_LABEL = {"cpu": 3e-4, "cuda": 1e-5}
SECONDS_AN_ENTITY = {"cpu": 3e-3, "cuda": 6e-5}


def _time(task: AlignmentTask, config: Config, place: torch.device) -> str:
    entities = sum(graph.num_entities for graph in task.graphs)
    rounds, folds = config.self_training.rounds, config.self_training.folds
    seconds = 0.0
    for encoder in config.encoders():
        if isinstance(encoder, PropagationConfig):
            seconds += (1 + rounds * folds) * entities * SECONDS_A_LABEL[place.type]
            continue
        # The last round has about twice the seeds.
        learned = task.num_seeds * (1 + (2 * folds if rounds else 0))
        seeds = min(encoder.seeds_per_step or task.num_seeds, task.num_seeds)
        steps = encoder.epochs * -(-learned // max(seeds, 1))
        touched = min(entities, 50 * (seeds + (encoder.negatives_per_step or entities)))
        seconds += steps * (0.01 + touched * SECONDS_A_ROW[place.type])
    seconds += (1 + rounds) * entities * SECONDS_AN_ENTITY[place.type]
    return f"about {seconds:.0f} s" if seconds < 120 else f"about {seconds / 60:.0f} minutes"


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
