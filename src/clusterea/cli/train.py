"""`clusterea train`: trains an embedding of every entity."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer
from rich.markup import escape

from clusterea.cli.console import OUTPUT
from clusterea.cli.data_options import DataOptions, takes_data
from clusterea.cli.locked import locks_run
from clusterea.cli.run_options import Device, Out
from clusterea.config import LABEL_PROPAGATION, Config, preset, training_config, with_settings
from clusterea.errors import InputError, address


@locks_run
@takes_data
def train(
    data: DataOptions,
    out: Out,
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="The encoder: gcn-align, rrea, dual-amn or label-propagation."
        ),
    ] = "dual-amn",
    full_graph: Annotated[
        bool,
        typer.Option(
            "--full-graph", help="Use all neighbors in each step, as the original models do."
        ),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Change a setting, as in epochs=10."),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Random seed: same seed, same embeddings.")
    ] = 0,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Remove the run in --out, and start over."),
    ] = False,
    device: Device = "auto",
) -> None:
    """Trains embeddings from the seeds and writes them into a run's folder.

    Same as `align --preset paper` with one encoder, stopped after training. `sample`, `fuse` and
    `match` continue the run. If training was stopped, the same command continues it.
    """
    from clusterea.cli.answers import with_answers
    from clusterea.cli.progress import watcher
    from clusterea.models import check_model
    from clusterea.pipeline import choose_device, run_in_folder
    from clusterea.workspace import Workspace, task_key

    check_model(model)  # refuse an unknown name before reading the data

    def configured(larger_side: int) -> Config:
        softmax = ["sampling.classifier=softmax"]  # as good as the paper's, and many times faster
        config = preset("paper", larger_side, model=model, seed=seed, settings=softmax)
        if model == LABEL_PROPAGATION:
            if full_graph:
                raise InputError(f"--full-graph is for models that are trained, not for {model}.")
            own = with_settings(config.propagation, settings or [], stage="propagation")
            return replace(config, propagation=own)
        trained = config.training
        if full_graph:
            trained = training_config(model, full_graph=True, seed=seed)
        return replace(config, training=with_settings(trained, settings or []))

    configured(0)  # refuse wrong settings before reading the data
    torch_device = choose_device(device)
    workspace = Workspace(out)
    undecided = data.load()
    of_task = task_key(undecided.task)
    benchmark = with_answers(undecided, None, out)
    with watcher(quiet=False, json_lines=False) as observer:
        workspace.claim(of_task, overwrite=overwrite)
        config = configured(max(benchmark.task.num_entities))
        result, _ = run_in_folder(
            workspace, benchmark, config, torch_device, observer, until="train", task=of_task
        )
    embeddings = result.embeddings
    sizes = " and ".join(f"{len(side):,}" for side in embeddings)
    OUTPUT.print(f"{sizes} embeddings of {embeddings.source.shape[1]} dimensions:")
    path = workspace.tensors_file(result.keys["train"])
    OUTPUT.print(f"  {escape(address(path))}", soft_wrap=True)
