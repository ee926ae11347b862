"""`PropagationConfig`: how the seeds' labels spread over both graphs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from clusterea.config.checks import check_least, check_not_negative

LABEL_PROPAGATION = "label-propagation"  # the encoder's name, beside those that are trained


@dataclass(frozen=True, slots=True)
class PropagationConfig:
    """The encoder `label-propagation`, which needs no training (LightEA, EMNLP 2022)."""

    dimension: int = 1024  # of the random label that the two ends of a seed share
    features: int = 2048  # of an entity's embedding: what its neighbourhood is projected to
    rounds: int = 3  # how far labels spread before the last aggregation
    self_weight: float = 0.25  # of an entity's own labels beside its neighbours', as they spread
    own_weight: float = 0.3  # of an entity's own labels beside its neighbourhood, at the end
    hub_damping: float = 0.1  # a neighbour of degree d counts d to the power of minus this
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("dimension", "features"):
            check_least(name, getattr(self, name), 1)
        for name in ("rounds", "seed"):
            check_least(name, getattr(self, name), 0)
        for name in ("self_weight", "own_weight", "hub_damping"):
            check_not_negative(name, getattr(self, name))

    @property
    def model(self) -> str:
        return LABEL_PROPAGATION

    def recipe(self) -> dict[str, Any]:
        """The fields that the result depends on: all of them."""
        return {"model": self.model, **asdict(self)}
