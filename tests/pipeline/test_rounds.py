"""The passes of a run: known before it starts, and those that take place."""

from __future__ import annotations

from collections import Counter

import pytest
from small_runs import CPU, benchmark, in_rounds, quick

from clusterea.config import Config, PropagationConfig, preset
from clusterea.pipeline import align
from clusterea.pipeline.rounds import Pass, Rounds, encodings


def models(each: Pass) -> list[str]:
    return [encoder.model for _, encoder in each.encoders]


@pytest.mark.parametrize("has_few", [True, False])
def test_without_self_training_there_is_one_pass(has_few: bool) -> None:
    rounds = Rounds(quick(), has_few)
    (only,) = rounds.passes()
    assert (rounds.ahead, rounds.most, rounds.goes_on) == (0, 0, False)
    assert (only.round, only.lessons, only.has_all) == (0, 1, True)
    assert models(only) == ["dual-amn"]


def test_where_seeds_are_plenty_only_the_last_rounds_take_place() -> None:
    rounds = Rounds(preset("default", 300), has_few=False)
    assert (rounds.ahead, rounds.trained, rounds.most) == (2, 2, 2)
    passes = rounds.passes()
    assert [each.has_all for each in passes] == [False, True, True]
    assert [each.lessons for each in passes] == [1, 2, 2]
    assert models(passes[0]) == ["label-propagation"]
    assert models(passes[1]) == ["dual-amn", "label-propagation"]


def test_where_seeds_are_few_rounds_go_on_up_to_the_setting() -> None:
    rounds = Rounds(preset("default", 300), has_few=True)
    assert (rounds.ahead, rounds.trained, rounds.most) == (None, 2, 8)
    assert [each.has_all for each in rounds.passes()] == 7 * [False] + 2 * [True]
    fast = Rounds(preset("fast", 300), has_few=True)
    assert {
        encoder.features
        for encoder in encodings(fast.passes())
        if isinstance(encoder, PropagationConfig)
    } == {512}


def test_without_label_propagation_every_pass_trains_but_not_in_a_warm_restart() -> None:
    config = preset("default", 300, model="dual-amn")
    rounds = Rounds(config, has_few=False)
    assert all(models(each) == ["dual-amn"] for each in rounds.passes())
    assert rounds.encoders(0, has_all=False, is_warm=True) == []


def test_names_alone_have_no_rounds() -> None:
    rounds = Rounds(preset("default", 300, model="names"), has_few=True)
    assert (rounds.ahead, rounds.most) == (0, 0)
    assert rounds.compared() == []


@pytest.mark.parametrize(
    "config",
    [
        quick(samplers=[]),
        in_rounds(),
        in_rounds("self_training.trained_rounds=2"),
        preset("fast", 160),
    ],
    ids=["one pass", "rounds", "trained rounds", "fast"],
)
def test_they_are_those_of_a_run(config: Config) -> None:
    small = benchmark((160, 130), share=0.6).task
    ran = Counter(cost.stage for cost in align(small, config, CPU).timings)
    names = {True: "propagation", False: "training"}
    wanted: Counter[str] = Counter()
    for each in Rounds.of(small, config).passes():
        for encoder in encodings([each]):
            name = names[isinstance(encoder, PropagationConfig)]
            wanted[f"{name}, round {each.round}" if each.round else name] += 1
    assert {stage: count for stage, count in ran.items() if stage in wanted} == wanted
