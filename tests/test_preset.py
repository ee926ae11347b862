"""Presets: data that fits its code, sizes at their bounds, and what may be changed."""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields, replace
from importlib.resources import files
from typing import Any

import pytest

from clusterea.config import (
    LABEL_PROPAGATION,
    PRESETS,
    SECTIONS,
    Config,
    FusionConfig,
    MatchingConfig,
    NamesConfig,
    PropagationConfig,
    SamplingConfig,
    SelfTrainingConfig,
    TrainingConfig,
    config_with,
    preset,
    training_config,
    with_reverse,
)
from clusterea.errors import InputError
from clusterea.models import check_model
from clusterea.samplers import find_sampler

KINDS: dict[str, Any] = {
    "training": TrainingConfig,
    "propagation": PropagationConfig,
    "names": NamesConfig,
    "sampling": SamplingConfig,
    "fusion": FusionConfig,
    "self_training": SelfTrainingConfig,
    "matching": MatchingConfig,
}
SIZES = [(2, 0), (50_000, 0), (50_001, 1), (500_000, 1), (500_001, 2), (10**7, 2)]


def table(name: str) -> dict[str, Any]:
    return tomllib.loads(files("clusterea").joinpath(f"presets/{name}.toml").read_text())


class TestFiles:
    def test_stages_are_those_of_the_config(self) -> None:
        assert tuple(KINDS) == SECTIONS
        assert {field.name for field in fields(Config)} == {*SECTIONS, "models", "samplers"}

    @pytest.mark.parametrize("name", PRESETS)
    def test_hold_known_fields_only(self, name: str) -> None:
        data = table(name)
        assert set(data) <= {"models", "samplers", "sizes", *SECTIONS}
        for part in (data, *data["sizes"]):
            for stage in SECTIONS:
                known = {field.name for field in fields(KINDS[stage])}
                assert set(part.get(stage, {})) <= known
                # The seed is the caller's; models are named for all stages.
                assert not {"seed", "model"} & set(part.get(stage, {}))
        for row in data["sizes"]:
            assert set(row) <= {"entities", *SECTIONS}

    @pytest.mark.parametrize("name", PRESETS)
    def test_sizes_rise_and_the_last_has_no_bound(self, name: str) -> None:
        *bounded, last = table(name)["sizes"]
        bounds = [row["entities"] for row in bounded]
        assert bounds == sorted(set(bounds))
        assert "entities" not in last

    @pytest.mark.parametrize("name", PRESETS)
    def test_name_what_exists(self, name: str) -> None:
        config = preset(name, 1000)
        for model in config.models:
            check_model(model)
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
        assert config.fusion.views == ("local", "global")
        assert config.samplers == ("cmcs", "iscs", "iscs-reverse")
        assert config.models == ("dual-amn",)
        assert config.self_training.rounds == 0
        assert config.matching.held_out == 0
        assert config.training == replace(training_config("dual-amn"), epochs=(20, 20, 10)[row])

    @pytest.mark.parametrize("name", PRESETS)
    @pytest.mark.parametrize(("entities", "row"), SIZES)
    def test_what_the_file_says_counts(self, name: str, entities: int, row: int) -> None:
        data = table(name)
        config = preset(name, entities)
        assert config.sampling.num_batches == (5, 10, 30)[row]
        for stage in set(SECTIONS) - {"training"}:
            own = getattr(config, stage)
            said = data.get(stage, {}) | data["sizes"][row].get(stage, {})
            assert own == KINDS[stage](**said)

    @pytest.mark.parametrize("name", PRESETS)
    @pytest.mark.parametrize(("entities", "row"), SIZES)
    def test_so_do_the_epochs_where_a_model_is_trained(
        self, name: str, entities: int, row: int
    ) -> None:
        data = table(name)
        said = data.get("training", {}) | data["sizes"][row].get("training", {})
        config = preset(name, entities, model="dual-amn")
        assert config.training == replace(training_config("dual-amn"), **said)

    @pytest.mark.parametrize(("entities", "row"), SIZES)
    def test_larger_graphs_have_fewer_rounds(self, entities: int, row: int) -> None:
        config = preset("default", entities)
        assert config.models == ("dual-amn", LABEL_PROPAGATION)
        assert config.samplers == ()
        rounds = config.self_training
        found = rounds.rounds, rounds.trained_rounds, rounds.folds, config.matching.fits
        assert found == [(8, 2, 2, 2), (6, 1, 2, 2), (2, 1, 1, 1)][row]
        assert config.fusion.views == ("local", "support")
        assert config.fusion.support_rounds == 2
        assert config.matching.held_out == [0.05, 0.1, 0.05][row]

    @pytest.mark.parametrize(("entities", "row"), SIZES)
    def test_fast_trains_nothing(self, entities: int, row: int) -> None:
        config = preset("fast", entities)
        assert config.encoders() == (config.propagation,)
        found = config.propagation.dimension, config.propagation.features
        assert found == [(1024, 2048), (512, 1024), (256, 512)][row]
        assert config.samplers == ()
        assert (config.self_training.rounds, config.matching.fits) == (2, 1)

    @pytest.mark.parametrize("name", PRESETS)
    def test_larger_graphs_are_cut_into_more(self, name: str) -> None:
        found = [preset(name, entities).sampling.num_batches for entities, _ in SIZES]
        assert found == sorted(found)


class TestModel:
    @pytest.mark.parametrize("name", PRESETS)
    @pytest.mark.parametrize("entities", [1000, 10**6])
    @pytest.mark.parametrize("model", ["rrea", "gcn-align"])
    def test_another_one_has_its_own_recipe(self, model: str, entities: int, name: str) -> None:
        config, own = preset(name, entities, model=model), preset(name, entities)
        assert config.models == (model,)
        assert config.training == training_config(model)
        assert config.training.epochs == 50
        assert config.encoders() == (config.training,)
        assert replace(config, models=own.models, training=own.training) == own

    @pytest.mark.parametrize("name", PRESETS)
    @pytest.mark.parametrize("entities", [1000, 10**6])
    def test_naming_the_presets_own_changes_nothing(self, name: str, entities: int) -> None:
        own = preset(name, entities)
        assert preset(name, entities, model=",".join(own.models)) == own
        assert preset(name, entities, model=" , ".join(own.models) + ",") == own

    @pytest.mark.parametrize("model", ["", ",", " , "])
    def test_none_is_refused(self, model: str) -> None:
        with pytest.raises(InputError, match="--model must name at least one encoder. Got"):
            preset("default", 1000, model=model)

    def test_settings_come_after_it(self) -> None:
        config = preset("paper", 1000, model="rrea", settings=["training.epochs=7"])
        assert config.training == training_config("rrea", epochs=7)


class TestEncoders:
    """The settings of each encoder that a config names."""

    def test_one_that_is_trained(self) -> None:
        config = preset("paper", 1000, settings=["training.epochs=7"])
        assert config.encoders() == (training_config("dual-amn", epochs=7),)

    def test_one_that_is_not(self) -> None:
        config = preset("paper", 1000, model=LABEL_PROPAGATION, settings=["propagation.rounds=1"])
        assert config.encoders() == (PropagationConfig(rounds=1),)

    @pytest.mark.parametrize("model", ["rrea,label-propagation", "label-propagation,rrea"])
    def test_several_are_in_the_order_asked_for(self, model: str) -> None:
        settings = ["training.epochs=7", "propagation.features=64"]
        config = preset("default", 1000, model=model, seed=3, settings=settings)
        assert config.models == tuple(model.split(","))
        by_name = {
            "rrea": training_config("rrea", epochs=7, seed=3),
            LABEL_PROPAGATION: PropagationConfig(features=64, seed=3),
        }
        assert config.encoders() == tuple(by_name[name] for name in config.models)

    def test_settings_of_training_are_those_of_the_first_that_is_trained(self) -> None:
        config = preset(
            "default",
            1000,
            model="label-propagation,rrea,gcn-align",
            seed=3,
            settings=["training.epochs=7"],
        )
        assert config.training.model == "rrea"
        _, first, second = config.encoders()
        assert first == training_config("rrea", epochs=7, seed=3)
        assert second == training_config("gcn-align", seed=3)

    def test_one_that_is_named_again_begins_with_another_seed(self) -> None:
        config = preset("default", 1000, model="dual-amn,label-propagation,dual-amn,dual-amn")
        assert [each.seed for each in config.encoders()] == [0, 0, 1, 2]
        assert len({each.model for each in config.encoders()}) == 2


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
        assert with_reverse(named) == meant
        assert preset("default", 1000, samplers=named).samplers == meant


class TestChanges:
    def test_the_seed_reaches_every_stage(self) -> None:
        for seed in (0, 7):
            config = preset("paper", 1000, seed=seed)
            assert {getattr(config, stage).seed for stage in SECTIONS} == {seed}

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
        base = preset("paper", 1000)
        assert config_with(base, []) == base
        changed = config_with(base, ["training.epochs=2", "matching.method=greedy"])
        assert (changed.training.epochs, changed.matching.method) == (2, "greedy")
        assert (base.training.epochs, base.matching.method) == (20, "one-to-one")

    def test_presets_do_not_change_each_other(self) -> None:
        before = preset("paper", 1000)
        preset("paper", 10**6, model="rrea", seed=3)
        assert preset("paper", 1000) == before

    def test_as_a_table(self) -> None:
        found = preset("paper", 1000).to_dict()
        assert set(found) == {*SECTIONS, "models", "samplers"}
        assert found["training"]["epochs"] == 20
        assert found["models"] == ("dual-amn",)
        assert found["samplers"] == ("cmcs", "iscs", "iscs-reverse")

    @pytest.mark.parametrize("name", PRESETS)
    def test_from_a_table_that_was_written_as_json(self, name: str) -> None:
        config = preset(name, 1000, samplers=["vps"], seed=7, settings=["matching.method=greedy"])
        assert Config.from_dict(json.loads(json.dumps(config.to_dict()))) == config


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
            ("epoch=3", "Did you mean 'training.epochs' or 'self_training.epochs'[?]$"),
            ("training.epoch=3", "unknown setting 'epoch'.*Did you mean 'epochs'"),
            ("matching.epochs=3", "unknown setting 'epochs'; choose one of method"),
            (
                "trainig.epochs=3",
                "unknown setting 'trainig.epochs'.*Did you mean 'training.epochs'",
            ),
            ("evaluation.hits=3", r"unknown setting 'evaluation.hits'. The nearest of \d+ are "),
            (
                "samplers=cmcs",
                r"unknown setting 'samplers'. The nearest of \d+ are (.*, ){4}[a-z._]*.$",
            ),
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
            ("self_trainig.rounds=1", "Did you mean 'self_training.rounds'"),
            ("self_training.threshold=2", r"threshold must be a number in \[0, 1\]. Got 2.0"),
            ("propagation.features=0", r"features must be an int in \[1, inf\). Got 0"),
            ("matching.held_out=-1", r"held_out must be a number in \[0, 1\). Got -1.0"),
            ("models=rrea", "unknown setting 'models'. Did you mean 'training.model'[?]$"),
            ("matching.seed=-2", r"seed must be an int in \[0, inf\). Got -2"),
        ],
    )
    def test_unknown_settings(self, setting: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            preset("default", 1000, settings=[setting])

    def test_a_seed_below_zero(self) -> None:
        with pytest.raises(InputError, match=r"seed must be an int in \[0, inf\). Got -1"):
            preset("default", 1000, seed=-1)
