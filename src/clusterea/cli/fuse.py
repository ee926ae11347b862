"""`clusterea fuse`: one sparse similarity from a run's embeddings and mini-batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer
from rich.markup import escape

from clusterea.cli.console import OUTPUT
from clusterea.cli.locked import locks_run
from clusterea.cli.progress import watcher
from clusterea.cli.run_options import Device, Run, Settings
from clusterea.config import with_reverse, with_settings
from clusterea.config.preset import listed
from clusterea.pipeline import Artifacts, choose_device, fuse_stage, measured
from clusterea.pipeline.encoding import without_seeds
from clusterea.pipeline.stored import (
    encoder_keys,
    sample_key,
    stored_embeddings,
    stored_fusion,
    stored_held_out,
    stored_partition,
)
from clusterea.workspace import Workspace


@locks_run
def fuse(
    run: Run,
    samplers: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Whose mini-batches; each as `clusterea sample` last made them.",
            show_default="those that align had, else cmcs,iscs",
        ),
    ] = None,
    settings: Settings = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="Same seed, same result.", show_default="align's, else 0"),
    ] = None,
    device: Device = "auto",
) -> None:
    """Fuses local and global similarities into one sparse matrix.

    After `align` it begins with the settings that `align` had, and --set changes them.
    """
    from clusterea.samplers import find_sampler

    place = choose_device(device)
    asked = None if samplers is None else with_reverse(listed(samplers))
    for sampler in asked or ():
        find_sampler(sampler)
    workspace = Workspace(run)
    task = workspace.load_benchmark().task
    encoders = encoder_keys(workspace, task)
    config, named = stored_fusion(workspace)
    if asked is not None:
        named = asked
    if seed is not None:
        config = replace(config, seed=seed)
    config = with_settings(config, settings or [], stage="fusion")
    held = stored_held_out(workspace, task, encoders["train"])
    if held is not None:  # they are matched like others, so that the confidence can be fitted
        task = without_seeds(task, held)
    keys = dict(encoders)
    keys |= {sampler: sample_key(workspace, sampler, keys["train"]) for sampler in named}
    partitions = {sampler: stored_partition(workspace, task, keys[sampler]) for sampler in named}
    with watcher(quiet=False, json_lines=False) as observer:
        observer.begin("fusion")
        artifacts = Artifacts(workspace, observer.warn)
        with measured("fusion", place) as cost:
            key, similarity = fuse_stage(
                artifacts,
                keys,
                task,
                lambda: [stored_embeddings(workspace, task, key) for key in encoders.values()],
                partitions,
                config,
                place,
                lambda what, done, total: observer.step("fusion", what, done, total),
            )
        cost.reused = key not in artifacts.made
        observer.end(cost)
    OUTPUT.print(f"{similarity!r}:")
    OUTPUT.print(f"  {escape(str(workspace.tensors_file(key)))}", soft_wrap=True)
