"""`clusterea fuse`: one sparse similarity from a run's embeddings and mini-batches."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from clusterea.cli.console import OUTPUT
from clusterea.cli.progress import watcher
from clusterea.cli.run_options import Device, Run, Seed, Settings
from clusterea.config import FusionConfig, with_settings
from clusterea.config.preset import both_ways, listed
from clusterea.pipeline import Artifacts, choose_device, fuse_stage, measured
from clusterea.pipeline.encoding import without_seeds
from clusterea.pipeline.stored import (
    encoder_keys,
    sample_key,
    stored_embeddings,
    stored_held_out,
    stored_partition,
)
from clusterea.workspace import Workspace


def fuse(
    run: Run,
    samplers: Annotated[
        str,
        typer.Option(
            metavar="NAME,…", help="Whose mini-batches; each as `clusterea sample` last made them."
        ),
    ] = "cmcs,iscs",
    settings: Settings = None,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Fuses local and global similarities into one sparse matrix."""
    from clusterea.samplers import find_sampler

    config = with_settings(FusionConfig(seed=seed), settings or [], stage="fusion")
    named = both_ways(listed(samplers))
    for sampler in named:
        find_sampler(sampler)
    place = choose_device(device)
    workspace = Workspace(run)
    task = workspace.load_benchmark().task
    encoders = encoder_keys(workspace, task)
    held = stored_held_out(workspace, encoders["train"])
    if held is not None:  # they are matched like others, so that the confidence can be fitted
        task = without_seeds(task, held)
    keys = dict(encoders)
    keys |= {sampler: sample_key(workspace, sampler, keys["train"]) for sampler in named}
    partitions = {sampler: stored_partition(workspace, keys[sampler]) for sampler in named}
    with watcher(quiet=False, json_lines=False) as observer:
        observer.begin("fusion")
        artifacts = Artifacts(workspace)
        with measured("fusion", place) as cost:
            key, similarity = fuse_stage(
                artifacts,
                keys,
                task,
                lambda: [stored_embeddings(workspace, key) for key in encoders.values()],
                partitions,
                config,
                place,
                lambda what, done, total: observer.step("fusion", what, done, total),
            )
        cost.reused = key not in artifacts.made
        observer.end(cost)
    OUTPUT.print(f"{similarity!r}:")
    OUTPUT.print(f"  {escape(str(workspace.tensors_file(key)))}", soft_wrap=True)
