"""The plan that `clusterea align` prints before it starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from clusterea.config import (
    LABEL_PROPAGATION,
    Config,
    EncoderConfig,
    PropagationConfig,
    config_with,
)
from clusterea.engines import SHARDS_PER_WORKER, check_engine
from clusterea.files import free_space, readable_size
from clusterea.numerics.block_sizes import available
from clusterea.pipeline import num_held_out
from clusterea.pipeline.cost import expected_seconds
from clusterea.pipeline.memory import expected_disk, expected_memory
from clusterea.pipeline.rounds import Rounds
from clusterea.pipeline.shard_plan import shard_plan
from clusterea.threads import available_cpus

if TYPE_CHECKING:
    import torch

    from clusterea.types import AlignmentTask, Benchmark, Pair, Texts

MOST_NAMED = 0.9  # with so many named entities, those without a name matter little


def plan(
    benchmark: Benchmark,
    config: Config,
    device: torch.device,
    allowed: int | None = None,
    engine: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """The stages of a run, and the memory, time and disk it is expected to take.

    `allowed` is the limit on memory, which the run keeps to. `engine` is from `described_engine`.
    """
    from clusterea.report.readable import seeds_origin

    task, sampling = benchmark.task, config.sampling
    fusion = config.fusion.on(device.type, task.num_undecided)
    source, target = task.graphs
    expected = expected_memory(task, config, device, engine.get("shards")).within(device, allowed)
    lines = [
        f"{source.num_entities:,} and {target.num_entities:,} entities, "
        f"{source.num_triples:,} and {target.num_triples:,} triples, "
        f"{len(task.all_seeds):,} seeds{seeds_origin(benchmark.seeds_from)}, "
        f"{len(benchmark.test_links):,} test links.",
        *_engine_lines(engine, task, config),
        f"Encoding   {_encoders(config, task)}, on {device}",
    ]
    if config.samplers:
        lines.append(
            f"Sampling   {', '.join(config.samplers)}: {sampling.num_batches:,} mini-batches"
            + (" each" if len(config.samplers) > 1 else "")
        )
    else:
        lines.append("Sampling   none: all entities at once")
    views = set(fusion.views) if config.samplers else set(fusion.views) - {"local"}
    has_sinkhorn = bool(views & {"local", "sinkhorn", "support"})
    normalized = f"Sinkhorn of {fusion.sinkhorn_rounds} rounds, " if has_sinkhorn else ""
    asked = fusion.support_rounds if "support" in views and fusion.support_weight else 0
    rounds = "round" if asked == 1 else "rounds"
    support = f", {asked} {rounds} of support" if asked else ""
    lines += [
        f"Fusion     {normalized}{fusion.candidates} candidates per entity, {fusion.search} search"
        + support,
        *_rounds(task, config),
        f"Matching   {config.matching.method}{_calibration(task, config)}",
        f"Expected   {_memory(expected.host, expected.gpu)}, {_time(task, config, device)}",
    ]
    lines.append(f"Disk       about {readable_size(expected_disk(benchmark, config, device))}")
    return escape("\n".join(lines))


def shortages(
    benchmark: Benchmark,
    config: Config,
    device: torch.device,
    out: Path,
    *,
    is_limited: bool = False,
    shards: int | None = None,
) -> list[str]:
    """Warnings that memory or disk may not suffice, and what to do about it.

    With a limit on memory, a run that does not fit is refused; no warning is needed.
    """
    found = []
    if expected_disk(benchmark, config, device) > free_space(out):
        free_disk = readable_size(free_space(out))
        found.append(f"The disk of {out} has {free_disk} free, which may be too little.")
    needed = expected_memory(benchmark.task, config, device, shards).on(device)
    free = None if is_limited else available(device)
    if free is not None and needed > free:
        found.append(_advice(benchmark.task, config, device, free))
    return found


def one_sided_seeds(benchmark: Benchmark) -> list[str]:
    """A warning if most seeds are identical IRIs or equal names: they represent others badly."""
    origin, seeds, names = benchmark.seeds_from, len(benchmark.task.all_seeds), benchmark.task.names
    if 2 * origin.get("iris", 0) > seeds:
        return [
            f"{origin['iris']:,} of {seeds:,} seeds are identical IRIs. The other entities may "
            "lack a counterpart more often, so a calibrated confidence may be too high."
        ]
    if names is not None and 2 * origin.get("names", 0) > seeds and min(_named(names)) < MOST_NAMED:
        source, target = (f"{1 - share:.0%}" for share in _named(names))
        return [
            f"{origin['names']:,} of {seeds:,} seeds are equal names, but {source} and {target} of "
            "the entities have no name. For links of these, a calibrated confidence may be too "
            "high."
        ]
    return []


def _named(names: Pair[Texts]) -> Pair[float]:
    """The share of the entities of each side that have a name."""
    return names.map(lambda side: side.share)


def described_engine(engine: str, shards: int | None, address: str | None) -> dict[str, Any]:
    """The options of the engine, checked.

    Without a number of shards: that of a Ray on this machine; None where the sizes, or the machines
    of a cluster, decide.
    """
    check_engine(engine, shards, address)
    if shards is None and engine == "ray" and address is None:
        shards = SHARDS_PER_WORKER * available_cpus()
    return {"engine": engine, "address": address, "shards": shards}


def _engine_lines(engine: Mapping[str, Any], task: AlignmentTask, config: Config) -> list[str]:
    """The engine, its shards and what their units take, if they are not the default."""
    kind, address, shards = (engine.get(name) for name in ("engine", "address", "shards"))
    if kind != "ray" and not shards:
        return []
    where = "local"
    if kind == "ray":
        where = f"ray at {address}" if address else "ray on this machine"
    if not shards:
        return [f"Engine     {where}"]
    on_disk = " on disk" if kind == "local" and shards > 1 else ""
    lines = [f"Engine     {where}, {_counted(shards)}{on_disk}"]
    if kind == "ray" or shards > 1:
        units = shard_plan(task, config, shards)
        each = f"workers of about {readable_size(units.worker)} each"
        if kind == "local":
            each = f"about {readable_size(units.unit)} at a time"
        lines.append(f"Units      {each}; they exchange about {readable_size(units.exchanged)}")
    return lines


def _counted(shards: int) -> str:
    return f"{shards:,} shard" + ("s" if shards > 1 else "")


def described_plan(
    benchmark: Benchmark,
    config: Config,
    device: torch.device,
    allowed: int | None = None,
    engine: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """The plan as plain values."""
    task, shards = benchmark.task, engine.get("shards")
    expected = expected_memory(task, config, device, shards).within(device, allowed)
    units = shard_plan(task, config, shards) if shards else None
    return {
        "entities": [graph.num_entities for graph in task.graphs],
        "triples": [graph.num_triples for graph in task.graphs],
        "seeds": len(task.all_seeds),
        "seeds_from": dict(benchmark.seeds_from),
        "test_links": len(benchmark.test_links),
        "device": str(device),
        **engine,
        "encoders": [_described_encoder(each) for each in config.encoders()],
        "samplers": list(config.samplers),
        "num_batches": config.sampling.num_batches if config.samplers else 1,
        "candidates": config.fusion.candidates,
        "self_training_rounds": _num_rounds(task, config),
        "matching": config.matching.method,
        "held_out_seeds": sum(num_held_out(task, config)),
        "fits": len(num_held_out(task, config)),
        "expected": {
            "host_bytes": expected.host,
            "gpu_bytes": expected.gpu,
            "worker_bytes": None if units is None else units.worker,
            "exchanged_bytes": None if units is None else units.exchanged,
            "disk_bytes": expected_disk(benchmark, config, device),
            "seconds": round(_seconds(task, config, device), 1),
        },
        "config": config.to_dict(),
    }


def _described_encoder(config: EncoderConfig) -> dict[str, Any]:
    described: dict[str, Any] = {"model": config.model}
    if not isinstance(config, PropagationConfig):
        described["epochs"] = config.epochs
    return described


def _encoders(config: Config, task: AlignmentTask) -> str:
    found = [
        each.model if isinstance(each, PropagationConfig) else f"{each.model}, {each.epochs} epochs"
        for each in config.encoders()
    ]
    beside = []
    if task.names is not None:
        beside.append("names and their translation" if config.names.translates else "names")
    if task.features is not None:
        beside.append(f"features of {task.features.source.shape[1]:,} dimensions")
    return "; ".join(filter(None, [" and ".join(found), *beside]))


def _rounds(task: AlignmentTask, config: Config) -> list[str]:
    rounds = _num_rounds(task, config)
    if not rounds:
        return []
    if config.self_training.are_few(len(task.all_seeds), task.num_entities):
        return [f"Rounds     {rounds} of self-training at most: seeds are few"]
    return [f"Rounds     {rounds} of self-training"]


def _num_rounds(task: AlignmentTask, config: Config) -> int:
    """The rounds of self-training; where seeds are few, at most."""
    return Rounds.of(task, config).most


def _calibration(task: AlignmentTask, config: Config) -> str:
    first, *others = num_held_out(task, config)
    if others:
        return f"; two fits, each with {first:,} other seeds held out, to fit the confidence"
    return f"; {first:,} seeds held out to fit the confidence" if first else ""


def _advice(task: AlignmentTask, config: Config, device: torch.device, free: int) -> str:
    """A warning about memory, with the setting that makes it fit and costs least accuracy."""
    problem = f"This may not fit into {readable_size(free)}."

    def fits(changed: Config) -> bool:
        return expected_memory(task, changed, device).on(device) <= free

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
                return f"{problem} Smaller {what} would: --set {setting}={value}."
    return f"{problem} No setting makes these graphs fit; it takes a machine with more memory."


def _memory(host: int, gpu: int) -> str:
    return f"{readable_size(host)} of memory" + (
        f" and {readable_size(gpu)} on the GPU" if gpu else ""
    )


def _time(task: AlignmentTask, config: Config, device: torch.device) -> str:
    seconds = _seconds(task, config, device)
    return f"about {seconds:.0f} s" if seconds < 120 else f"about {seconds / 60:.0f} minutes"


def _seconds(task: AlignmentTask, config: Config, device: torch.device) -> float:
    return sum(seconds for _, seconds in expected_seconds(task, config, device))
