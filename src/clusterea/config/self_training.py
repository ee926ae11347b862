"""`SelfTrainingConfig`: how matches become seeds of another round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from clusterea.config.checks import check_least
from clusterea.errors import InputError


@dataclass(frozen=True, slots=True)
class SelfTrainingConfig:
    """Rounds that start again from the seeds and the surest matches of the round before."""

    rounds: int = 0  # after the first pass; 0: no self-training
    threshold: float = 0.6  # a match becomes a pseudo-seed above this chance to be right
    epochs: int = 0  # of training in a round; 0: as many as in the first pass
    folds: int = 1  # runs of each encoder in a round, each without one part of the pseudo-seeds
    check: bool = True  # score a pseudo-seed only with the fold that did not train on it
    least_gain: float = 0.02  # share of new pseudo-seeds below which a round is the last
    seed: int = 0  # of the folds, and of the order of ties

    def __post_init__(self) -> None:
        for name in ("rounds", "epochs", "seed"):
            check_least(name, getattr(self, name), 0)
        check_least("folds", self.folds, 1)
        for name in ("threshold", "least_gain"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(
                    f"{name} must be a number in [0, 1]. Got {getattr(self, name)} instead."
                )

    def recipe(self) -> dict[str, Any]:
        """The fields that the choice of pseudo-seeds depends on."""
        return {"threshold": self.threshold, "seed": self.seed}
