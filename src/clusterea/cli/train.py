"""`clusterea train`: an embedding of every entity, kept in a run's folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from clusterea.cli.console import ERRORS, OUTPUT, show_warning
from clusterea.cli.data_options import DataOptions, takes_data
from clusterea.cli.locked import locks_run
from clusterea.cli.run_options import Device
from clusterea.config import (
    LABEL_PROPAGATION,
    EncoderConfig,
    PropagationConfig,
    TrainingConfig,
    training_config,
    with_settings,
)
from clusterea.errors import InputError
from clusterea.pipeline import Artifacts, Known, choose_device, point_at_encoders, train_stage
from clusterea.workspace import Workspace, task_key

if TYPE_CHECKING:
    from clusterea.training import EncoderProgress as Step


@locks_run
@takes_data
def train(
    data: DataOptions,
    out: Annotated[Path, typer.Option(help="The run's folder.", show_default=False)],
    model: Annotated[
        str, typer.Option(metavar="NAME", help="gcn-align, rrea, dual-amn or label-propagation.")
    ] = "dual-amn",
    full_graph: Annotated[
        bool,
        typer.Option("--full-graph", help="Every neighbour in every step, as in the originals."),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Any setting, as --set epochs=10."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Same seed, same embeddings.")] = 0,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Remove the run that --out holds, and begin anew."),
    ] = False,
    device: Device = "auto",
) -> None:
    """Trains embeddings from the seeds and writes them into a run's folder.

    A run that was stopped goes on after its last full epoch when the same command is given again;
    one that is finished is found again at once.
    """
    from clusterea.models import check_model

    check_model(model)  # so that an unknown one is refused before anything is written
    config: EncoderConfig
    if model == LABEL_PROPAGATION:
        if full_graph:
            raise InputError(f"--full-graph is for models that are trained, not for {model}.")
        config = with_settings(PropagationConfig(seed=seed), settings or [], stage="propagation")
    else:
        config = training_config(model, full_graph=full_graph, seed=seed)
        config = with_settings(config, settings or [])
    place = choose_device(device)
    workspace = Workspace(out)
    benchmark = data.load()
    of_task = task_key(benchmark.task)
    workspace.claim(of_task, overwrite=overwrite)
    ERRORS.print(_plan(config, benchmark.task.num_seeds, str(place)))
    workspace.save_benchmark(benchmark, show_warning)
    with _bar() as bar:
        show = _Shown(bar)
        artifacts = Artifacts(workspace, show_warning)
        known = Known(benchmark.task, {"task": of_task})
        is_trained = isinstance(config, TrainingConfig)
        key, embeddings = train_stage(
            artifacts, known, config, place, show.step if is_trained else None
        )
        point_at_encoders(artifacts, [key])
    sizes = " and ".join(f"{len(side):,}" for side in embeddings)
    OUTPUT.print(f"{sizes} embeddings of {embeddings.source.shape[1]} dimensions:")
    OUTPUT.print(f"  {escape(str(workspace.tensors_file(key)))}", soft_wrap=True)
    if key not in artifacts.made:
        ERRORS.print("They were there already.")
    elif show.touched:
        ERRORS.print(show.touched)


class _Shown:
    """The progress of training: a bar from the first step on, or a line an epoch in a log."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("Training", total=None, visible=False, loss="")
        self.touched = ""

    def step(self, at: Step) -> None:
        """Shows a step that was done."""
        if not self.touched and at.epoch > 1:
            ERRORS.print(f"Going on after epoch {at.epoch - 1}.")
        if not ERRORS.is_terminal and at.step == at.steps:
            ERRORS.print(f"Epoch {at.epoch} of {at.epochs}: loss {at.loss:.2f}")
        done = (at.epoch - 1) * at.steps + at.step
        self._bar.update(
            self._task,
            completed=done,
            total=at.epochs * at.steps,
            description=f"Epoch {at.epoch} of {at.epochs}",
            visible=True,  # from now on
        )
        if at.loss is not None:
            self._bar.update(self._task, loss=f"loss {at.loss:.2f}")
        self.touched = f"Its last step touched {at.rows_touched:,} rows of the entity table."


class _Speed(ProgressColumn):
    """Steps a second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f} steps/s" if task.speed else "")


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[loss]}"),
        _Speed(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=ERRORS,
        disable=not ERRORS.is_terminal,  # a log has a line an epoch instead
    )


def _plan(config: EncoderConfig, seeds: int, device: str) -> str:
    if isinstance(config, PropagationConfig):
        return f"Spreading the labels of {seeds:,} seeds on {device}."
    how = "on the full graph" if config.fanout is None else f"with fan-out {config.fanout}"
    return (
        f"Training {config.model} {how}: {config.epochs} epochs over {seeds:,} seeds on {device}."
    )
