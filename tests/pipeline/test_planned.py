"""The stages of a run, before it starts and as they take place."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_runs import CPU, benchmark, in_rounds, quick

from clusterea.config import Config, preset
from clusterea.pipeline import Silent, run_in_folder
from clusterea.pipeline.planned import planned_stages
from clusterea.types import AlignmentTask, StageCost
from clusterea.workspace import Workspace, task_key


class Stages(Silent):
    def __init__(self) -> None:
        self.labels: list[str] = []

    def end(self, cost: StageCost) -> None:
        self.labels.append(cost.stage)


@pytest.mark.parametrize(
    "config",
    [
        quick(),
        in_rounds("self_training.trained_rounds=2"),
        in_rounds("matching.fits=2"),
        preset("fast", 160),
    ],
    ids=["mini-batches", "rounds", "fits", "fast"],
)
def test_they_are_those_of_a_run_in_their_order(config: Config, tmp_path: Path) -> None:
    small = benchmark((160, 130), share=0.6)
    workspace, seen = Workspace(tmp_path / "run"), Stages()
    workspace.claim(task_key(small.task))
    run_in_folder(workspace, small, config, CPU, seen)
    assert [stage.label for stage in planned_stages(small.task, config)] == seen.labels


def test_what_is_held_grows_within_a_pass_and_falls_after_it() -> None:
    task: AlignmentTask = benchmark((160, 130), share=0.6).task
    stages = {stage.label: stage for stage in planned_stages(task, in_rounds())}
    assert stages["propagation"].held == 0
    assert stages["fusion"].held == 48
    assert stages["training, round 2"].held == 96  # the second fold
    assert stages["fusion, round 2"].structure == stages["fusion, round 2"].held == 2 * (96 + 48)


def test_pairs_of_a_round_are_more_than_those_of_the_first_pass() -> None:
    task = benchmark((160, 130), share=0.6).task
    first, *_, last = (
        each for each in planned_stages(task, in_rounds()) if each.encoder is not None
    )
    assert first.pairs < last.pairs <= min(task.num_entities)
