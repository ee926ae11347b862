"""`PropagationConfig`: settings of label propagation."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from clusterea.config.checks import check_least

LABEL_PROPAGATION = "label-propagation"  # the name of the encoder that is not trained


@dataclass(frozen=True, slots=True)
class PropagationConfig:
    """The encoder `label-propagation`, which needs no training (LightEA, EMNLP 2022)."""

    dimension: int = 1024  # of the random label that the two ends of a seed share
    features: int = 2048  # of an entity's embedding, a random projection of its neighborhood
    rounds: int = 3  # in which labels spread, before the last aggregation
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("dimension", "features"):
            check_least(name, getattr(self, name), 1)
        for name in ("rounds", "seed"):
            check_least(name, getattr(self, name), 0)

    @property
    def model(self) -> str:
        return LABEL_PROPAGATION

    def recipe(self) -> dict[str, Any]:
        """The fields that the result depends on: all of them."""
        return {"model": self.model, **asdict(self)}
