"""A run in a folder: `run_in_folder` starts or continues it, `load_run` reads it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from clusterea.config import Config
from clusterea.engines import Engine
from clusterea.errors import DataError
from clusterea.pipeline.align import Stage, align
from clusterea.pipeline.learning import Fitted
from clusterea.pipeline.link_gains import CONTENTS
from clusterea.pipeline.observer import Observer
from clusterea.pipeline.outputs import import_ahead, write_manifest, write_outputs
from clusterea.pipeline.previous import Previous
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
from clusterea.workspace import DataKeys, Manifest, Workspace, task_key

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
    samplers: Sequence[str] | None = None,
    min_confidence: float = 0.0,
    top: int | None = None,
    task: str | None = None,
    previous: Previous | None = None,
    engine: Engine | None = None,
) -> tuple[AlignmentResult, Metrics | None]:
    """Runs `align` in a folder: computes what is missing, and writes all files.

    If `until` is before `match`, it writes only the manifest.

    Args:
        workspace: The folder, claimed for this task.
        benchmark: The data.
        config: All settings.
        device: Where to compute.
        observer: Gets progress and warnings.
        until: The last stage to run.
        samplers: With `until="sample"`: the samplers to run, if not those of the config.
        min_confidence: The least confidence or score in `alignment.tsv`.
        top: Most links in `alignment.tsv`.
        task: The key of the task without decisions, which the folder is claimed for. Default: that
            of the run in the folder, if it has the same data, or else that of `benchmark`.
        previous: What to take over from the run before, from `find_previous`.
        engine: Where the units of a stage run; default: in this process.
    """
    if until == "match":
        import_ahead(has_samplers=bool(config.samplers))
    claimed = task or _claimed(workspace.folder, task_key(benchmark.task))
    data = DataKeys(claimed, workspace.save_benchmark(benchmark, observer.warn, claimed))
    result = align(
        benchmark.task,
        config,
        device,
        workspace=workspace,
        observer=observer,
        until=until,
        samplers=samplers,
        previous=previous,
        engine=engine,
    )
    result = replace(result, benchmark=benchmark, min_confidence=min_confidence, top=top)
    if until != "match":
        write_manifest(workspace.folder, result, data, device, result.timings)
        return result, None
    return result, write_outputs(workspace.folder, result, data, device, observer)


def _claimed(folder: Path, decided: str) -> str:
    """The key of the task without decisions, of a run that continues the one in the folder."""
    with suppress(DataError, KeyError):  # there is none, or it is of an earlier version
        manifest = Manifest.read(folder)
        if manifest.values["data"]["decided"] == decided:
            return manifest.task
    return decided


def load_run(folder: Path, need: Stage | None = None) -> AlignmentResult:
    """The result of a run, finished or not. Its parts are read when they are first used.

    Args:
        folder: The run's folder.
        need: The stage that must be finished. If the last command stopped before it, the result is
            that of the last finished run.

    Raises:
        DataError: The folder has no run, or none that finished this stage.
        DamagedError: The manifest or the data are damaged.
    """
    workspace, manifest = Workspace(folder), Manifest.read(folder)
    if need is not None:
        manifest = manifest.reaching(need)
    benchmark = workspace.load_benchmark(manifest.data)
    sizes = benchmark.task.num_entities
    config, keys = manifest.config, manifest.artifacts
    leaves = Previous.from_dict(manifest.values["leaves"])

    def stored(name: str, kind: type[Kept]) -> Made[Kept]:
        key = keys[name]
        return Made(key, lambda: read(workspace, key, kind, sizes), reused=True)

    def last(name: str, kind: type[Kept]) -> Made[Kept] | None:
        return stored(name, kind) if name in keys else None

    def fitted(number: int) -> Fitted:
        from clusterea.fusion import Trust

        similarity = stored(f"fuse-{number}", Similarity)
        trial = last(f"trial-{number}", Similarity) or similarity
        contents = {
            name: stored(f"{name}-{number}", Embeddings)
            for name in CONTENTS
            if f"{name}-{number}" in keys
        }
        trust = last(f"trust-{number}", Trust)
        return Fitted(similarity, trial, contents, trust, leaves.trained[number - 1])

    min_confidence, top = manifest.bounds
    taken_over = manifest.values.get("taken_over")
    return AlignmentResult(
        benchmark.task,
        config,
        {name: stored(name, Embeddings) for name in keys if name.startswith("train")},
        {name: stored(name, Partition) for name in config.samplers if name in keys},
        last("fuse", Similarity),
        last("match", Alignment),
        tuple(StageCost(**cost) for cost in manifest.values.get("stages", ())),
        tuple(
            Round(stored(f"pseudo-{number}", Links), row["new"], row["fit"] - 1)
            for number, row in enumerate(manifest.values.get("self_training", ()), start=1)
        ),
        benchmark,
        min_confidence,
        top,
        tuple(fitted(number) for number in range(1, 3) if f"fuse-{number}" in keys),
        None if taken_over is None else Previous.from_dict(taken_over),
    )
