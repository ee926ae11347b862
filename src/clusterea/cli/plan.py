"""What `clusterea align` says before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from clusterea.config import LABEL_PROPAGATION, Config, PropagationConfig, config_with
from clusterea.files import free_space, readable_size
from clusterea.pipeline.encoding import num_held_out
from clusterea.pipeline.memory import available, expected_disk, expected_memory, widths

if TYPE_CHECKING:
    import torch

    from clusterea.types import AlignmentTask, Benchmark


def plan(
    benchmark: Benchmark,
    config: Config,
    place: torch.device,
    allowed: int | None,
    out: Path | None = None,
) -> str:
    """What a run will do, what it will take, and whether that fits."""
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
    asked = fusion.support_rounds if fusion.global_sinkhorn and fusion.support_weight else 0
    rounds = "round" if asked == 1 else "rounds"
    support = f", {asked} {rounds} of support" if asked else ""
    lines += [
        f"Fusion     {normalized}{fusion.candidates} candidates an entity, {fusion.search} search"
        + support,
        *_rounds(config),
        f"Matching   {config.matching.method}{_calibration(task, config)}",
        f"Expected   {_memory(expected.host, expected.gpu)}, {_time(task, config, place)}",
    ]
    disk = expected_disk(benchmark, config)
    lines.append(f"Disk       about {readable_size(disk)}")
    if out is not None and disk > free_space(out):
        lines.append(f"The disk of {out} has {readable_size(free_space(out))} free: too little.")
    needed = expected.gpu if place.type == "cuda" else expected.host
    free = allowed or available(place)
    if free is not None and needed > free:
        lines.append(
            f"This may not fit into {readable_size(free)}. {_advice(task, config, place, free)}"
        )
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

    tries: list[tuple[str, str, Sequence[int], int | None]] = []
    if config.samplers:
        sizes = (50_000, 20_000, 10_000, 5_000, 2_000, 1_000)
        tries.append(("mini-batches", "sampling.max_batch", sizes, config.sampling.max_batch))
    if LABEL_PROPAGATION in config.models:
        features = config.propagation.features
        tries.append(("embeddings", "propagation.features", (1024, 512, 256), features))
    dimension = config.training.dimension
    tries.append(("embeddings", "training.dimension", (100, 64, 32, 16), dimension))
    for what, setting, values, now in tries:
        for value in values:
            is_less = now is None or value < now
            if is_less and fits(config_with(config, [f"{setting}={value}"])):
                return f"Smaller {what} would: --set {setting}={value}."
    return "No setting makes these graphs fit; it takes a machine with more memory."


def _memory(host: int, gpu: int) -> str:
    return f"{readable_size(host)} of memory" + (
        f" and {readable_size(gpu)} on the GPU" if gpu else ""
    )


# Seconds for a step of training at a row touched, for a number of labels and their features, for
# samplers and files at an entity; products a second of the search. Measured on two CPU cores and on
# one H200. Rough: other machines differ by a factor of a few.
SECONDS_A_ROW = {"cpu": 8e-5, "cuda": 4e-8}
SECONDS_A_LABEL = {"cpu": 5e-8, "cuda": 4e-9}
SECONDS_OF_SAMPLING = {"cpu": 7e-4, "cuda": 1.5e-5}
SECONDS_AN_ENTITY = {"cpu": 4e-5, "cuda": 4e-5}
PRODUCTS_A_SECOND = {"cpu": 6e10, "cuda": 5e13}


def _time(task: AlignmentTask, config: Config, place: torch.device) -> str:
    from clusterea.numerics.lists import COMPARED

    kind = place.type
    sizes = [graph.num_entities for graph in task.graphs]
    rounds, folds = config.self_training.rounds, config.self_training.folds
    seconds = sum(sizes) * SECONDS_AN_ENTITY[kind]
    for encoder in config.encoders():
        if isinstance(encoder, PropagationConfig):
            numbers = sum(sizes) * (encoder.dimension + encoder.features)
            seconds += (1 + rounds * folds) * numbers * SECONDS_A_LABEL[kind]
            continue
        # The last round has about twice the seeds.
        learned = task.num_seeds * (1 + (2 * folds if rounds else 0))
        seeds = min(encoder.seeds_per_step or task.num_seeds, task.num_seeds)
        steps = encoder.epochs * -(-learned // max(seeds, 1))
        touched = min(sum(sizes), 50 * (seeds + (encoder.negatives_per_step or sum(sizes))))
        seconds += steps * (0.01 + touched * SECONDS_A_ROW[kind])
    free = [size - task.num_seeds for size in sizes]
    cells = free[0] * free[1]
    if kind == "cpu" and config.fusion.search == "approximate":
        cells = min(cells, sum(free) * COMPARED)
    seconds += (1 + rounds) * cells * sum(widths(config)) / PRODUCTS_A_SECOND[kind]
    seconds += (1 + rounds) * len(config.samplers) * sum(sizes) * SECONDS_OF_SAMPLING[kind]
    return f"about {seconds:.0f} s" if seconds < 120 else f"about {seconds / 60:.0f} minutes"
