"""`SelfTrainingConfig`: how matches become seeds of another round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from clusterea.config.checks import check_choice, check_least
from clusterea.errors import InputError

Retrain = Literal["last", "every"]
Measure = Literal["chance", "score"]


@dataclass(frozen=True, slots=True)
class SelfTrainingConfig:
    """Rounds that begin anew from the seeds and the surest matches of the round before."""

    rounds: int = 0  # beyond the first; 0: no self-training
    threshold: float = 0.6  # a match is taken that is surer
    measure: Measure = "chance"  # how sure it is; where no seeds are held out, always its score
    retrain: Retrain = "last"  # which rounds train anew; label propagation is run in all
    epochs: int = 0  # of training in a round; 0: as many as before
    folds: int = 1  # encoders of a round, each of which leaves out one part of the pseudo-seeds
    check: bool = True  # with folds: whether those that have not learned a pair alone decide on it
    least_gain: float = 0.02  # share of pseudo-seeds that must be new, or this round is the last
    seed: int = 0  # of the order of ties

    def __post_init__(self) -> None:
        for name in ("rounds", "epochs", "seed"):
            check_least(name, getattr(self, name), 0)
        check_least("folds", self.folds, 1)
        check_choice("retrain", self.retrain, Retrain)
        check_choice("measure", self.measure, Measure)
        for name in ("threshold", "least_gain"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(
                    f"{name} must be a number in [0, 1]. Got {getattr(self, name)} instead."
                )

    def recipe(self) -> dict[str, Any]:
        """The fields that one round's choice depends on, beside what it is measured by."""
        return {"threshold": self.threshold, "seed": self.seed}
