"""`clusterea fuse`: one sparse similarity from a run's embeddings and mini-batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer
from rich.markup import escape

from clusterea.cli.console import OUTPUT
from clusterea.cli.locked import locks_run
from clusterea.cli.run_options import Device, Run, Seed, Settings
from clusterea.config import with_reverse, with_settings
from clusterea.config.preset import listed
from clusterea.errors import address


@locks_run
def fuse(
    run: Run,
    samplers: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Use the mini-batches of these samplers.",
            show_default="the run's",
        ),
    ] = None,
    settings: Settings = None,
    seed: Seed = None,
    device: Device = "auto",
) -> None:
    """Fuses local and global similarities into one sparse matrix.

    Same as `align` with the settings of the run, changed by these options and stopped after fusion.
    Only what is missing is computed.
    """
    from clusterea.cli.progress import watcher
    from clusterea.pipeline import choose_device, load_run, run_in_folder
    from clusterea.samplers import find_sampler
    from clusterea.workspace import Workspace

    torch_device = choose_device(device)
    asked = None if samplers is None else with_reverse(listed(samplers))
    for sampler in asked or ():
        find_sampler(sampler)
    before = load_run(run)
    fusion = before.config.fusion if seed is None else replace(before.config.fusion, seed=seed)
    config = replace(
        before.config,
        fusion=with_settings(fusion, settings or [], stage="fusion"),
        samplers=before.config.samplers if asked is None else asked,
    )
    workspace = Workspace(run)
    with watcher(quiet=False, json_lines=False) as observer:
        result, _ = run_in_folder(
            workspace,
            before.named,
            config,
            torch_device,
            observer,
            until="fuse",
            previous=before.previous,
        )
    OUTPUT.print(f"{result.similarity!r}:")
    path = workspace.tensors_file(result.keys["fuse"])
    OUTPUT.print(f"  {escape(address(path))}", soft_wrap=True)
