"""Settings: the paper's recipes, single changes, and what is refused."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from clusterea.config import (
    MatchingConfig,
    PropagationConfig,
    SamplingConfig,
    SelfTrainingConfig,
    TrainingConfig,
    training_config,
    with_settings,
    with_stage_settings,
)
from clusterea.errors import InputError
from clusterea.models import ENCODERS
from clusterea.samplers import SAMPLERS
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

    @pytest.mark.parametrize("name", ["dimension", "epochs", "negatives_per_seed", "redraw_every"])
    def test_but_not_elsewhere(self, name: str) -> None:
        with pytest.raises(InputError, match=rf"{name} must be an int in \[1, inf\). Got 0"):
            TrainingConfig(**{name: 0})  # type: ignore[arg-type]


class TestRefused:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"fanout": -1}, r"fanout must be an int in \[1, inf\). Got -1 instead."),
            ({"seeds_per_step": -5}, r"seeds_per_step must be an int in \[1, inf\). Got -5"),
            ({"edges_per_block": 0}, r"edges_per_block must be an int in \[1, inf\)"),
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
            ({"graph_memory": "gpu"}, "unknown graph_memory 'gpu'; choose one of auto, host"),
            ({"table_memory": "disk"}, "unknown table_memory 'disk'"),
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
            ("mixed_precision=false", "mixed_precision", False),
            ("mixed_precision=True", "mixed_precision", True),
            ("graph_memory=host", "graph_memory", "host"),
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
            ("mixed_precision=maybe", "mixed_precision must be of type bool. Got 'maybe'"),
            ("mixed_precision=", "mixed_precision must be of type bool. Got ''"),
            ("optimizer=sgd", "optimizer must be adam where fanout is set"),
            ("model=rrea", "choose the model with --model"),
        ],
    )
    def test_bad(self, text: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            with_settings(DEFAULT, [text])


class TestRecipeFields:
    PLACES = ("graph_memory", "table_memory", "edges_per_block")

    def test_places_are_no_part_of_a_recipe(self) -> None:
        names = {field.name for field in fields(TrainingConfig)}
        assert set(DEFAULT.recipe()) == names - set(self.PLACES)
        moved = replace(DEFAULT, graph_memory="host", table_memory="host", edges_per_block=9)
        assert moved.recipe() == DEFAULT.recipe()

    def test_everything_else_is(self) -> None:
        assert replace(DEFAULT, seed=1).recipe() != DEFAULT.recipe()
        assert replace(DEFAULT, learning_rate=0.1).recipe() != DEFAULT.recipe()


class TestSampling:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"num_batches": 0}, r"num_batches must be an int in \[1, inf\). Got 0"),
            ({"max_batch": 0}, r"max_batch must be an int in \[1, inf\). Got 0"),
            ({"kmeans_rounds": 0}, r"kmeans_rounds must be an int in \[1, inf\). Got 0"),
            ({"kmeans_starts": 0}, r"kmeans_starts must be an int in \[1, inf\). Got 0"),
            ({"gcn_units": 0}, r"gcn_units must be an int in \[1, inf\). Got 0"),
            ({"gcn_epochs": -3}, r"gcn_epochs must be an int in \[1, inf\). Got -3"),
            ({"seed": -1}, r"seed must be an int in \[0, inf\). Got -1"),
            ({"kmeans_tolerance": 0.0}, r"kmeans_tolerance must be a number in \(0, inf\). Got 0"),
            ({"gcn_rate": float("nan")}, r"gcn_rate must be a number in \(0, inf\). Got nan"),
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

    @pytest.mark.parametrize("sampler", SAMPLERS)
    def test_a_recipe_leaves_out_what_belongs_to_another_sampler(self, sampler: str) -> None:
        recipe = SAMPLING.recipe(sampler)
        assert {"num_batches", "max_batch", "seed"} <= set(recipe)
        of_cmcs = {"classifier", "kmeans_rounds", "kmeans_tolerance", "kmeans_starts"}
        of_iscs = {"gcn_units", "gcn_epochs", "gcn_rate"}
        assert bool(of_cmcs & set(recipe)) == sampler.startswith("cmcs")
        assert bool(of_iscs & set(recipe)) == sampler.startswith("iscs")
        own = of_cmcs if sampler == "cmcs" else of_iscs if sampler.startswith("iscs") else set()
        assert own <= set(recipe)

    def test_a_change_is_seen_by_those_whom_it_concerns(self) -> None:
        for change, concerned in (
            ({"num_batches": 9}, set(SAMPLERS)),
            ({"seed": 9}, set(SAMPLERS)),
            ({"max_batch": 9}, set(SAMPLERS)),
            ({"kmeans_rounds": 9}, {"cmcs"}),
            ({"classifier": "xgboost"}, {"cmcs"}),
            ({"gcn_epochs": 9}, {"iscs", "iscs-reverse"}),
        ):
            base = SamplingConfig(classifier="softmax")
            changed: SamplingConfig = replace(base, **change)
            different = {name for name in SAMPLERS if base.recipe(name) != changed.recipe(name)}
            assert different == concerned


class TestPropagation:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"dimension": 0}, r"dimension must be an int in \[1, inf\). Got 0"),
            ({"features": 0}, r"features must be an int in \[1, inf\). Got 0"),
            ({"rounds": -1}, r"rounds must be an int in \[0, inf\). Got -1"),
            ({"seed": -1}, r"seed must be an int in \[0, inf\). Got -1"),
            ({"self_weight": -0.1}, r"self_weight must be a number in \[0, inf\). Got -0.1"),
            ({"own_weight": float("nan")}, r"own_weight must be a number in \[0, inf\). Got nan"),
            ({"hub_damping": float("inf")}, r"hub_damping must be a number in \[0, inf\). Got inf"),
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

    def test_all_of_it_counts(self) -> None:
        base = MatchingConfig()
        assert set(base.recipe()) == {field.name for field in fields(base)}


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
