"""Settings: the paper's recipes, single changes, and what is refused."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from clusterea.config import (
    FusionConfig,
    MatchingConfig,
    PropagationConfig,
    SamplingConfig,
    SelfTrainingConfig,
    TrainingConfig,
    preset,
    training_config,
    with_settings,
    with_stage_settings,
)
from clusterea.errors import InputError
from clusterea.models import ENCODERS
from clusterea.samplers.classifiers import CLASSIFIERS

DEFAULT = TrainingConfig()
SAMPLING = SamplingConfig()


class TestRecipes:
    @pytest.mark.parametrize("full_graph", [False, True])
    @pytest.mark.parametrize("model", ENCODERS)
    def test_every_model_has_both(self, model: str, full_graph: bool) -> None:
        config = training_config(model, full_graph=full_graph)
        assert config.model == model
        assert (config.fanout is None) == full_graph

    def test_the_papers_stochastic_numbers(self) -> None:
        for model, epochs in (("dual-amn", 20), ("rrea", 50), ("gcn-align", 50)):
            config = training_config(model)
            assert (config.fanout, config.seeds_per_step, config.negatives_per_step) == (
                8,
                2000,
                4000,
            )
            assert (config.epochs, config.optimizer, config.loss) == (epochs, "adam", "nhsm")

    def test_the_originals_full_graph_numbers(self) -> None:
        dual = training_config("dual-amn", full_graph=True)
        assert (dual.seeds_per_step, dual.negatives_per_step) == (1024, None)
        assert (dual.loss, dual.sharpness, dual.margin) == ("nhsm", 30, 1)
        for model, activation in (("rrea", "relu"), ("gcn-align", "tanh")):
            config = training_config(model, full_graph=True)
            assert (config.loss, config.margin, config.seeds_per_step) == ("margin", 3, None)
            assert config.activation == activation

    def test_changes_go_on_top(self) -> None:
        changed = training_config("rrea", epochs=3, fanout=0)
        assert changed == replace(training_config("rrea"), epochs=3, fanout=None)

    def test_a_model_that_the_paper_lacks_begins_with_the_defaults(self) -> None:
        assert training_config("mine") == TrainingConfig(model="mine")
        assert training_config("mine", full_graph=True).fanout is None


class TestZeroMeansNone:
    @pytest.mark.parametrize("name", ["fanout", "seeds_per_step", "negatives_per_step"])
    def test_where_there_may_be_no_limit(self, name: str) -> None:
        changes: dict[str, Any] = {name: 0}
        assert getattr(TrainingConfig(**changes), name) is None
        assert TrainingConfig(**changes) == TrainingConfig(**{name: None})  # type: ignore[arg-type]
        assert getattr(with_settings(DEFAULT, [f"{name}=0"]), name) is None

    @pytest.mark.parametrize("name", ["dimension", "epochs", "negatives_per_seed"])
    def test_but_not_elsewhere(self, name: str) -> None:
        with pytest.raises(InputError, match=rf"{name} must be an int in \[1, inf\). Got 0"):
            TrainingConfig(**{name: 0})  # type: ignore[arg-type]


class TestViews:
    def test_from_text_and_from_json(self) -> None:
        config = with_settings(FusionConfig(), [" views = local, global,"], stage="fusion")
        assert config.views == ("local", "global")
        assert FusionConfig(**json.loads(json.dumps(config.recipe()))) == config

    def test_the_default_is_the_preset_default(self) -> None:
        own = preset("default", 100_000).fusion
        assert replace(FusionConfig(), candidates=own.candidates) == own

    @pytest.mark.parametrize("views", ["", "local,local"])
    def test_none_or_one_twice(self, views: str) -> None:
        with pytest.raises(InputError, match="views must be one or more names, each once"):
            with_settings(FusionConfig(), [f"views={views}"], stage="fusion")


class TestRefused:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"fanout": -1}, r"fanout must be an int in \[1, inf\). Got -1 instead."),
            ({"seeds_per_step": -5}, r"seeds_per_step must be an int in \[1, inf\). Got -5"),
            ({"learning_rate": 0.0}, r"learning_rate must be a number in \(0, inf\). Got 0.0"),
            ({"learning_rate": float("nan")}, r"learning_rate must be a number in \(0, inf\)"),
            ({"learning_rate": float("inf")}, r"learning_rate must be a number in \(0, inf\)"),
            ({"sharpness": -1.0}, r"sharpness must be a number in \(0, inf\). Got -1"),
            ({"margin": float("inf")}, r"margin must be a number in \(0, inf\). Got inf"),
            ({"dropout": 1.0}, r"dropout must be a number in \[0, 1\). Got 1.0"),
            ({"dropout": float("nan")}, r"dropout must be a number in \[0, 1\)"),
            ({"seed": -1}, r"seed must be an int in \[0, inf\). Got -1"),
            ({"loss": "nhms"}, "unknown loss 'nhms'; choose one of nhsm, margin. Did you mean"),
            ({"optimizer": "adamw"}, "unknown optimizer 'adamw'.*Did you mean 'adam'"),
            ({"activation": "gelu"}, "unknown activation 'gelu'; choose one of tanh, relu"),
            ({"optimizer": "sgd"}, "optimizer must be adam where fanout is set.*Got sgd"),
        ],
    )
    def test_with_a_message(self, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(InputError, match=message):
            TrainingConfig(**changes)

    def test_any_optimizer_suits_the_full_graph(self) -> None:
        assert TrainingConfig(optimizer="sgd", fanout=0).optimizer == "sgd"

    def test_nothing_changes_after_the_fact(self) -> None:
        with pytest.raises(FrozenInstanceError):
            DEFAULT.epochs = 3  # type: ignore[misc]


class TestParseSetting:
    @pytest.mark.parametrize(
        ("text", "name", "value"),
        [
            ("epochs=10", "epochs", 10),
            (" training.epochs = 10 ", "epochs", 10),
            ("learning-rate=1e-3", "learning_rate", 0.001),
            ("sharpness=20", "sharpness", 20.0),
            ("loss=margin", "loss", "margin"),
            ("activation=relu", "activation", "relu"),
            ("fanout=none", "fanout", None),
            ("seeds_per_step=all", "seeds_per_step", None),
            ("negatives_per_step=64", "negatives_per_step", 64),
        ],
    )
    def test_good(self, text: str, name: str, value: object) -> None:
        parsed = with_settings(DEFAULT, [text])
        assert getattr(parsed, name) == value
        assert type(getattr(parsed, name)) is type(value)
        assert parsed == replace(DEFAULT, **{name: value})  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("epochs", "--set must be FIELD=VALUE, as epochs=10. Got 'epochs'"),
            ("epoch=3", "unknown setting 'epoch'.*Did you mean 'epochs'"),
            ("epochs=many", "epochs must be of type int. Got 'many'"),
            ("epochs=2.5", "epochs must be of type int. Got '2.5'"),
            ("epochs=none", "epochs must be of type int. Got 'none'"),
            ("dropout=half", "dropout must be of type float. Got 'half'"),
            ("dropout=1", r"dropout must be a number in \[0, 1\). Got 1.0"),
            ("optimizer=sgd", "optimizer must be adam where fanout is set"),
            ("model=rrea", "choose the model with --model"),
        ],
    )
    def test_bad(self, text: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            with_settings(DEFAULT, [text])


class TestBooleans:
    MATCHING = MatchingConfig()

    @pytest.mark.parametrize(("text", "value"), [("false", False), ("True", True)])
    def test_good(self, text: str, value: bool) -> None:
        found = with_settings(self.MATCHING, [f"abstain={text}"], stage="matching")
        assert found.abstain is value

    @pytest.mark.parametrize("text", ["maybe", ""])
    def test_bad(self, text: str) -> None:
        with pytest.raises(InputError, match=f"abstain must be of type bool. Got {text!r}"):
            with_settings(self.MATCHING, [f"abstain={text}"], stage="matching")


def test_every_field_is_in_the_recipe() -> None:
    assert set(DEFAULT.recipe()) == {field.name for field in fields(TrainingConfig)}


class TestSampling:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"num_batches": 0}, r"num_batches must be an int in \[1, inf\). Got 0"),
            ({"max_batch": 0}, r"max_batch must be an int in \[1, inf\). Got 0"),
            ({"kmeans_starts": 0}, r"kmeans_starts must be an int in \[1, inf\). Got 0"),
            ({"gcn_epochs": -3}, r"gcn_epochs must be an int in \[1, inf\). Got -3"),
            ({"seed": -1}, r"seed must be an int in \[0, inf\). Got -1"),
            ({"largest_share": 1.0}, r"largest_share must be a number in \(1, inf\). Got 1.0"),
            ({"largest_share": float("inf")}, r"largest_share must be a number in \(1, inf\)"),
            ({"largest_share": float("nan")}, r"largest_share must be a number in \(1, inf\)"),
            ({"classifier": "xgbost"}, "unknown classifier 'xgbost'.*Did you mean 'xgboost'"),
        ],
    )
    def test_what_is_refused(self, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(InputError, match=message):
            SamplingConfig(**changes)

    def test_no_bound_is_fine(self) -> None:
        assert SamplingConfig(max_batch=None).max_batch is None

    def test_classifiers_are_those_that_exist(self) -> None:
        for name in CLASSIFIERS:
            changes: dict[str, Any] = {"classifier": name}
            assert SamplingConfig(**changes).classifier == name


class TestPropagation:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"dimension": 0}, r"dimension must be an int in \[1, inf\). Got 0"),
            ({"features": 0}, r"features must be an int in \[1, inf\). Got 0"),
            ({"rounds": -1}, r"rounds must be an int in \[0, inf\). Got -1"),
            ({"seed": -1}, r"seed must be an int in \[0, inf\). Got -1"),
        ],
    )
    def test_what_is_refused(self, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(InputError, match=message):
            PropagationConfig(**changes)

    def test_its_recipe_says_which_encoder_it_is(self) -> None:
        config = PropagationConfig()
        assert config.recipe()["model"] == config.model == "label-propagation"
        assert set(config.recipe()) == {"model", *(field.name for field in fields(config))}
        assert config.recipe() != replace(config, rounds=1).recipe()


class TestSelfTraining:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"rounds": -1}, r"rounds must be an int in \[0, inf\). Got -1"),
            ({"folds": 0}, r"folds must be an int in \[1, inf\). Got 0"),
            ({"seed": -1}, r"seed must be an int in \[0, inf\). Got -1"),
            ({"threshold": 1.1}, r"threshold must be a number in \[0, 1\]. Got 1.1"),
            ({"threshold": float("nan")}, r"threshold must be a number in \[0, 1\]. Got nan"),
            ({"least_gain": -0.1}, r"least_gain must be a number in \[0, 1\]. Got -0.1"),
        ],
    )
    def test_what_is_refused(self, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(InputError, match=message):
            SelfTrainingConfig(**changes)

    def test_how_many_rounds_there_are_changes_none_of_them(self) -> None:
        base = SelfTrainingConfig()
        assert replace(base, rounds=3, folds=2, least_gain=0.5).recipe() == base.recipe()
        assert replace(base, threshold=0.7).recipe() != base.recipe()
        assert replace(base, seed=1).recipe() != base.recipe()


class TestMatching:
    @pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
    def test_what_is_refused(self, share: float) -> None:
        with pytest.raises(
            InputError, match=rf"held_out must be a number in \[0, 1\). Got {share}"
        ):
            MatchingConfig(held_out=share)

    @pytest.mark.parametrize("fits", [0, 3])
    def test_fits_out_of_range(self, fits: int) -> None:
        with pytest.raises(InputError, match=f"fits must be 1 or 2. Got {fits}"):
            MatchingConfig(fits=fits)

    def test_all_of_it_counts_but_the_fits_which_are_inputs(self) -> None:
        base = MatchingConfig()
        assert {*base.recipe(), "fits"} == {field.name for field in fields(base)}
        assert "fits" not in base.recipe()


class TestStages:
    def test_one_of_another_name(self) -> None:
        for text in ("num_batches=9", "sampling.num_batches=9", " sampling.num-batches = 9"):
            changed = with_settings(SAMPLING, [text], stage="sampling")
            assert changed == replace(SAMPLING, num_batches=9)
        assert with_settings(SAMPLING, ["max_batch=none"], stage="sampling").max_batch is None
        for text in ("training.num_batches=9", "training.epochs=9"):
            with pytest.raises(InputError, match=f"unknown setting '{text[:-2]}'"):
                with_settings(SAMPLING, [text], stage="sampling")

    def test_several(self) -> None:
        configs: dict[str, Any] = {"training": DEFAULT, "sampling": SAMPLING}
        texts = [
            "training.seed=1",
            "sampling.seed=2",
            "sampling.largest-share=3",
            "training.epochs=4",
        ]
        assert with_stage_settings(configs, texts) == {
            "training": replace(DEFAULT, seed=1, epochs=4),
            "sampling": replace(SAMPLING, seed=2, largest_share=3.0),
        }
        assert with_stage_settings(configs, []) == configs
        assert configs == {"training": DEFAULT, "sampling": SAMPLING}

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("seed=1", "which stage's seed[?] Say training.seed or sampling.seed"),
            ("sampling.epochs=1", "unknown setting 'epochs'; choose one of num_batches"),
            ("samplng.seed=1", "unknown setting 'samplng.seed'.*Did you mean 'sampling.seed'"),
            ("sampling.seed", "--set must be FIELD=VALUE"),
            ("sampling.seed=x", "seed must be of type int. Got 'x'"),
            ("sampling.num_batches=0", r"num_batches must be an int in \[1, inf\). Got 0"),
            ("sampling.classifier=forest", "unknown classifier 'forest'"),
            ("training.model=rrea", "choose the model with --model"),
        ],
    )
    def test_what_is_refused(self, text: str, message: str) -> None:
        configs: dict[str, Any] = {"training": DEFAULT, "sampling": SAMPLING}
        with pytest.raises(InputError, match=message):
            with_stage_settings(configs, [text])

    def test_the_last_of_two_wins_and_all_are_checked_at_once(self) -> None:
        changed = with_settings(SAMPLING, ["seed=1", "seed=2"], stage="sampling")
        assert changed.seed == 2
        together = with_settings(DEFAULT, ["optimizer=sgd", "fanout=0"])  # neither order is wrong
        assert (together.optimizer, together.fanout) == ("sgd", None)
