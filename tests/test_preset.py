"""Presets: data that fits its code, sizes at their bounds, and what may be changed."""

from __future__ import annotations

import tomllib
from dataclasses import fields, replace
from importlib.resources import files
from typing import Any

import pytest

from clusterea.config import (
    PRESETS,
    STAGES,
    Config,
    FusionConfig,
    MatchingConfig,
    SamplingConfig,
    TrainingConfig,
    config_with,
    preset,
    training_config,
)
from clusterea.config.preset import both_ways
from clusterea.errors import InputError
from clusterea.models import find_encoder
from clusterea.samplers import find_sampler

KINDS: dict[str, Any] = {
    "training": TrainingConfig,
    "sampling": SamplingConfig,
    "fusion": FusionConfig,
    "matching": MatchingConfig,
}
SIZES = [(2, 0), (50_000, 0), (50_001, 1), (500_000, 1), (500_001, 2), (10**7, 2)]


def table(name: str) -> dict[str, Any]:
    return tomllib.loads(files("clusterea").joinpath(f"presets/{name}.toml").read_text())


class TestFiles:
    def test_stages_are_those_of_the_config(self) -> None:
        assert tuple(KINDS) == STAGES
        assert {field.name for field in fields(Config)} == {*STAGES, "samplers"}

    @pytest.mark.parametrize("name", PRESETS)
    def test_hold_known_fields_only(self, name: str) -> None:
        data = table(name)
        assert set(data) <= {"samplers", "sizes", *STAGES}
        for part in (data, *data["sizes"]):
            for stage in STAGES:
                known = {field.name for field in fields(KINDS[stage])}
                assert set(part.get(stage, {})) <= known
                assert "seed" not in part.get(stage, {})  # which is the caller's
        for row in data["sizes"]:
            assert set(row) <= {"entities", *STAGES}

    @pytest.mark.parametrize("name", PRESETS)
    def test_sizes_rise_and_the_last_has_no_bound(self, name: str) -> None:
        *bounded, last = table(name)["sizes"]
        bounds = [row["entities"] for row in bounded]
        assert bounds == sorted(set(bounds))
        assert "entities" not in last

    @pytest.mark.parametrize("name", PRESETS)
    def test_name_what_exists(self, name: str) -> None:
        config = preset(name, 1000)
        find_encoder(config.training.model)
        for sampler in config.samplers:
            find_sampler(sampler)

    def test_every_file_is_a_preset(self) -> None:
        found = {
            place.name.removesuffix(".toml")
            for place in files("clusterea").joinpath("presets").iterdir()
            if place.name.endswith(".toml")
        }
        assert found == {*PRESETS, "training"}


class TestSizes:
    @pytest.mark.parametrize(("entities", "row"), SIZES)
    def test_paper(self, entities: int, row: int) -> None:
        """The figures of the paper's appendix D, by the larger side."""
        config = preset("paper", entities)
        found = config.sampling.num_batches, config.sampling.gcn_epochs, config.training.epochs
        assert found == [(5, 800, 20), (10, 1500, 20), (30, 3000, 10)][row]
        assert config.sampling.classifier == "xgboost"
        assert config.fusion.candidates == 50
        assert config.fusion.hubness_neighbors == 10
        assert config.fusion.sinkhorn_rounds == 100
        assert config.fusion.sinkhorn_temperature == 0.02
        assert config.fusion.csls
        assert config.fusion.global_similarity
        assert config.fusion.sinkhorn
        assert config.samplers == ("cmcs", "iscs", "iscs-reverse")
        assert config.training == replace(training_config("dual-amn"), epochs=(20, 20, 10)[row])

    @pytest.mark.parametrize("name", ["default", "fast"])
    @pytest.mark.parametrize(("entities", "row"), SIZES)
    def test_others(self, name: str, entities: int, row: int) -> None:
        config, rows = preset(name, entities), table(name)["sizes"]
        assert config.sampling.num_batches == (5, 10, 30)[row]
        epochs = rows[row].get("training", {}).get("epochs", table(name)["training"].get("epochs"))
        assert config.training.epochs == epochs
        for field, value in rows[row]["sampling"].items():
            assert getattr(config.sampling, field) == value

    @pytest.mark.parametrize("name", PRESETS)
    def test_larger_graphs_are_cut_into_more(self, name: str) -> None:
        found = [preset(name, entities).sampling.num_batches for entities, _ in SIZES]
        assert found == sorted(found)


class TestModel:
    @pytest.mark.parametrize("name", PRESETS)
    @pytest.mark.parametrize("entities", [1000, 10**6])
    @pytest.mark.parametrize("model", ["rrea", "gcn-align"])
    def test_another_one_has_its_own_recipe(self, model: str, entities: int, name: str) -> None:
        config = preset(name, entities, model=model)
        assert config.training == training_config(model)
        assert config.training.epochs == 50
        assert replace(config, training=preset(name, entities).training) == preset(name, entities)

    @pytest.mark.parametrize("name", PRESETS)
    @pytest.mark.parametrize("entities", [1000, 10**6])
    def test_naming_the_presets_own_changes_nothing(self, name: str, entities: int) -> None:
        own = preset(name, entities)
        assert preset(name, entities, model=own.training.model) == own

    def test_settings_come_after_it(self) -> None:
        config = preset("paper", 1000, model="rrea", settings=["training.epochs=7"])
        assert config.training == training_config("rrea", epochs=7)


class TestSamplers:
    @pytest.mark.parametrize(
        ("named", "meant"),
        [
            ([], ()),
            (["iscs"], ("iscs", "iscs-reverse")),
            (["iscs-reverse"], ("iscs-reverse",)),
            (["iscs", "cmcs"], ("iscs", "iscs-reverse", "cmcs")),
            (["iscs-reverse", "iscs"], ("iscs-reverse", "iscs")),
            (["iscs", "iscs-reverse", "iscs"], ("iscs", "iscs-reverse")),
            (["metis-cps", "vps", "vps"], ("metis-cps", "vps")),
        ],
    )
    def test_iscs_means_both_directions(self, named: list[str], meant: tuple[str, ...]) -> None:
        assert both_ways(named) == meant
        assert preset("default", 1000, samplers=named).samplers == meant


class TestChanges:
    def test_the_seed_reaches_every_stage(self) -> None:
        for seed in (0, 7):
            config = preset("paper", 1000, seed=seed)
            assert {getattr(config, stage).seed for stage in STAGES} == {seed}

    def test_settings_win(self) -> None:
        config = preset(
            "paper",
            1000,
            seed=7,
            settings=[
                "matching.seed=1",
                "sampling.num-batches = 8",
                "fusion.csls=false",
                "fusion.outside=best",
                "sampling.max_batch=none",
            ],
        )
        base = preset("paper", 1000, seed=7)
        assert config == replace(
            base,
            matching=replace(base.matching, seed=1),
            sampling=replace(base.sampling, num_batches=8, max_batch=None),
            fusion=replace(base.fusion, csls=False, outside="best"),
        )

    def test_of_a_config(self) -> None:
        base = preset("fast", 1000)
        assert config_with(base, []) == base
        changed = config_with(base, ["training.epochs=2", "matching.method=greedy"])
        assert (changed.training.epochs, changed.matching.method) == (2, "greedy")
        assert (base.training.epochs, base.matching.method) == (8, "one-to-one")

    def test_presets_do_not_change_each_other(self) -> None:
        before = preset("paper", 1000)
        preset("paper", 10**6, model="rrea", seed=3)
        assert preset("paper", 1000) == before

    def test_as_a_table(self) -> None:
        found = preset("fast", 1000).to_dict()
        assert set(found) == {*STAGES, "samplers"}
        assert found["training"]["epochs"] == 8
        assert found["samplers"] == ("cmcs",)


class TestErrors:
    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("papr", r"unknown preset 'papr'; choose one of .*\. Did you mean 'paper'\?"),
            ("training", "unknown preset 'training'; choose one of paper, default, fast"),
            ("../paper", "unknown preset"),
        ],
    )
    def test_unknown_presets(self, name: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            preset(name, 1000)

    @pytest.mark.parametrize(
        ("setting", "message"),
        [
            ("training.epoch=3", "unknown setting 'epoch'.*Did you mean 'epochs'"),
            ("fusion.epochs=3", "unknown setting 'epochs'; choose one of candidates"),
            (
                "trainig.epochs=3",
                "unknown setting 'trainig.epochs'.*Did you mean 'training.epochs'",
            ),
            ("evaluation.hits=3", "unknown setting 'evaluation.hits'; choose one of training"),
            ("samplers=cmcs", "unknown setting 'samplers'; choose one of training"),
            ("training.epochs", "--set must be FIELD=VALUE, as .*epochs=10. Got 'training.epochs'"),
            ("training.model=rrea", "choose the model with --model"),
            ("fusion.outside=nobody", "unknown outside 'nobody'; choose one of none, best"),
            ("fusion.search=fast", "unknown search 'fast'; choose one of exact, approximate"),
            ("fusion.candidates=0", r"candidates must be an int in \[1, inf\). Got 0"),
            ("fusion.sinkhorn_rounds=-1", r"sinkhorn_rounds must be an int in \[0, inf\). Got -1"),
            (
                "fusion.sinkhorn_temperature=0",
                r"sinkhorn_temperature must be a number in \(0, inf\). Got 0",
            ),
            ("fusion.csls=no", "csls must be of type bool. Got 'no'"),
            ("matching.method=best-of", "unknown matching method 'best-of'; choose one of"),
            ("matching.seed=-2", r"seed must be an int in \[0, inf\). Got -2"),
        ],
    )
    def test_unknown_settings(self, setting: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            preset("default", 1000, settings=[setting])

    def test_a_seed_below_zero(self) -> None:
        with pytest.raises(InputError, match=r"seed must be an int in \[0, inf\). Got -1"):
            preset("default", 1000, seed=-1)
