"""`TrainingConfig`: how embeddings are trained."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from typing import Any, Literal

from clusterea.config.checks import check_choice, check_least, check_positive
from clusterea.errors import InputError

LossName = Literal["nhsm", "margin"]
OptimizerName = Literal["adam", "rmsprop", "sgd"]
Activation = Literal["tanh", "relu"]

COUNTS = (
    "dimension",
    "epochs",
    "fanout",
    "seeds_per_step",
    "negatives_per_step",
    "negatives_per_seed",
)


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """How embeddings are trained. The recipes of the paper's rows: `presets/training.toml`."""

    model: str = "dual-amn"
    dimension: int = 128  # D, of an entity's row; rrea and dual-amn output six times as many
    activation: Activation = "tanh"  # of rrea and dual-amn; the original RREA has relu
    fanout: int | None = 8  # F: neighbors expanded at each hop; 0 or none: the full graph
    epochs: int = 20
    seeds_per_step: int | None = 2000  # N_p; none: all
    negatives_per_step: int | None = 4000  # N_n, of each side; none: every entity
    loss: LossName = "nhsm"
    sharpness: float = 30.0  # λ of the NHSM loss
    margin: float = 1.0  # γ
    negatives_per_seed: int = 5  # of the margin loss, for each side of each seed
    optimizer: OptimizerName = "adam"
    learning_rate: float = 0.005
    dropout: float = 0.3  # of the output
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("fanout", "seeds_per_step", "negatives_per_step"):
            if getattr(self, name) == 0:  # TOML has no word for none
                object.__setattr__(self, name, None)
        check_choice("activation", self.activation, Activation)
        check_choice("loss", self.loss, LossName)
        check_choice("optimizer", self.optimizer, OptimizerName)
        for name in COUNTS:
            if getattr(self, name) is not None:
                check_least(name, getattr(self, name), 1)
        check_least("seed", self.seed, 0)
        for name in ("sharpness", "margin", "learning_rate"):
            check_positive(name, getattr(self, name))
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be a number in [0, 1). Got {self.dropout} instead.")
        if self.fanout is not None and self.optimizer != "adam":
            raise InputError(
                "optimizer must be adam where fanout is set: only adam updates just the rows that "
                f"a step reads. Got {self.optimizer} instead."
            )

    def recipe(self) -> dict[str, Any]:
        """The fields that the result depends on: all of them."""
        return asdict(self)


def training_config(model: str, *, full_graph: bool = False, **changes: Any) -> TrainingConfig:
    """The paper's settings for one model, trained stochastically or on the full graph.

    A model that is not in the paper has the defaults.
    """
    recipes = tomllib.loads(files("clusterea").joinpath("presets/training.toml").read_text())
    way = "full-graph" if full_graph else "stochastic"
    recipe = recipes.get(model, {}).get(way, {"fanout": 0} if full_graph else {})
    return replace(TrainingConfig(model=model, **recipe), **changes)
