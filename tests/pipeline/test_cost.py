"""The expected time: operations of each stage, times constants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from small_runs import benchmark, in_rounds, quick

from clusterea.config import PRESETS, Config, preset
from clusterea.pipeline import cost
from clusterea.pipeline.cost import (
    START,
    constants,
    constants_of,
    expected_seconds,
    operations,
    stage_seconds,
)
from clusterea.pipeline.planned import Planned, planned_stages
from clusterea.pipeline.working_memory import Sizes
from clusterea.types import AlignmentTask, Texts

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
TASK = benchmark().task


def total(task: AlignmentTask, config: Config, device: torch.device = CPU) -> float:
    return sum(seconds for _, seconds in expected_seconds(task, config, device))


def named(task: AlignmentTask) -> AlignmentTask:
    names = task.num_entities.map(lambda count: Texts.of_lists([["name"]] * count))
    return replace(task, names=names)


def test_every_constant_is_of_an_operation() -> None:
    every = [
        *planned_stages(named(TASK), preset("default", 300)),
        *planned_stages(TASK, preset("paper", 300, samplers=["cmcs", "iscs", "vps", "metis-cps"])),
        *planned_stages(TASK, preset("default", 300, settings=["matching.fits=2"])),
        Planned(START, START),
    ]
    sizes = Sizes(TASK, preset("paper", 300), "cpu")
    known = {constants_of(each.kind): set(operations(each, sizes)) for each in every}
    for device in ("cpu", "cuda"):
        for kind, values in constants()[device].items():
            if isinstance(values, dict):
                assert set(values) <= known[kind]
                assert all(value > 0 for value in values.values())


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("device", [CPU, CUDA], ids=str)
def test_more_of_anything_takes_longer(name: str, device: torch.device) -> None:
    larger = benchmark((900, 800)).task
    config = preset(name, 300)
    assert 0 < total(TASK, config, device) < total(larger, config, device)


def test_settings_count() -> None:
    few = total(TASK, quick())
    assert total(TASK, quick("training.epochs=30")) > few
    assert total(TASK, quick("sampling.gcn_epochs=3000")) > few
    assert total(TASK, quick(samplers=[])) < few
    rounds = total(TASK, in_rounds("self_training.rounds=2"))
    assert total(TASK, in_rounds("self_training.rounds=6")) > rounds
    assert total(named(TASK), in_rounds()) > total(TASK, in_rounds())


def test_the_start_comes_first_and_then_the_stages_in_order() -> None:
    found = expected_seconds(TASK, quick(), CPU)
    labels = [stage.label for stage in planned_stages(TASK, quick())]
    assert [label for label, _ in found] == [START, *labels]


def test_operations_without_a_constant_count_nothing() -> None:
    stage = Planned("matching", "matching")
    sizes = Sizes(TASK, quick(), "cpu")
    assert stage_seconds(stage, sizes, {}) == 0
    assert stage_seconds(stage, sizes, {"matching": {"once": 3.0}}) == 3


def test_more_threads_are_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, Any] = {"cpu": {"threads": 2, "start": {"once": 10.0}}}
    monkeypatch.setattr(cost, "constants", lambda: known)
    seconds = []
    for threads in (1, 2, 4):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        seconds.append(total(TASK, quick()))
    assert seconds[0] > seconds[1] == 10 > seconds[2] > 5


def test_a_sampler_of_the_users_own_is_like_others() -> None:
    sizes = Sizes(TASK, quick(), "cpu")
    assert operations(Planned("sampling: mine", "mine"), sizes) == {"entities": sizes.entities}
