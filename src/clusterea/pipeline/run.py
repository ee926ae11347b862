"""A run in a folder: `run_in_folder` makes or continues one, `load_run` reads one back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from clusterea.config import Config
from clusterea.pipeline.align import Stage, align
from clusterea.pipeline.observer import Observer
from clusterea.pipeline.outputs import write_manifest, write_outputs
from clusterea.pipeline.result import AlignmentResult, Round
from clusterea.pipeline.store import Made, read
from clusterea.types import (
    Alignment,
    Benchmark,
    Embeddings,
    Links,
    Metrics,
    Partition,
    Similarity,
    StageCost,
    Stored,
)
from clusterea.workspace import Manifest, Workspace

if TYPE_CHECKING:
    import torch

Kept = TypeVar("Kept", bound=Stored)


def run_in_folder(
    workspace: Workspace,
    benchmark: Benchmark,
    config: Config,
    device: torch.device,
    observer: Observer,
    *,
    until: Stage = "match",
    described: Config | None = None,
    min_confidence: float = 0.0,
    top: int | None = None,
) -> tuple[AlignmentResult, Metrics | None]:
    """`align` in a folder that was claimed: computes what it lacks, and writes all files.

    Stopped before `match`, it writes the manifest alone.

    Args:
        workspace: The folder.
        benchmark: The data.
        config: All settings.
        device: Where to compute.
        observer: Told how far things are.
        until: The last stage to run.
        described: The settings that the manifest shows, if not `config`.
        min_confidence: Of the links in `alignment.tsv`.
        top: How many of them at most.
    """
    data = workspace.save_benchmark(benchmark, observer.warn)
    result = align(
        benchmark.task, config, device, workspace=workspace, observer=observer, until=until
    )
    result = replace(result, benchmark=benchmark, min_confidence=min_confidence, top=top)
    if until != "match":
        write_manifest(workspace.folder, result, data, device, result.timings, described)
        return result, None
    return result, write_outputs(workspace.folder, result, data, device, observer)


def load_run(folder: Path, need: Stage | None = None) -> AlignmentResult:
    """The result of a run, as far as it got. Parts are read when they are asked for.

    Args:
        folder: Of the run.
        need: The stage that it must have got to. If the last command was stopped before, this is
            the whole run before it.

    Raises:
        DataError: The folder holds no run, or none that got so far.
        DamagedError: Its manifest or its data are not as they were written.
    """
    workspace, manifest = Workspace(folder), Manifest.read(folder)
    if need is not None:
        manifest = manifest.reaching(need)
    benchmark = workspace.load_benchmark(manifest.data)
    sizes = benchmark.task.num_entities
    config, keys = manifest.config, manifest.artifacts

    def stored(name: str, kind: type[Kept]) -> Made[Kept]:
        key = keys[name]
        return Made(key, lambda: read(workspace, key, kind, sizes), reused=True)

    def last(name: str, kind: type[Kept]) -> Made[Kept] | None:
        return stored(name, kind) if name in keys else None

    min_confidence, top = manifest.bounds
    return AlignmentResult(
        benchmark.task,
        config,
        {name: stored(name, Embeddings) for name in keys if name.startswith("train")},
        {name: stored(name, Partition) for name in config.samplers if name in keys},
        last("fuse", Similarity),
        last("match", Alignment),
        tuple(StageCost(**cost) for cost in manifest.values.get("stages", ())),
        tuple(
            Round(stored(f"pseudo-{row['round']}", Links), row["new"])
            for row in manifest.values.get("self_training", ())
        ),
        benchmark,
        min_confidence,
        top,
    )
