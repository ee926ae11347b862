"""`SelfTrainingConfig`: how matches become seeds of another round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clusterea.config.checks import check_least
from clusterea.errors import InputError

if TYPE_CHECKING:
    from clusterea.types import Pair


@dataclass(frozen=True, slots=True)
class SelfTrainingConfig:
    """Rounds that start again from the seeds and the surest matches of the round before.

    Where seeds are few, rounds of label propagation go on while they gain, and encoders that are
    trained take part in the last rounds. Where seeds are plenty, there are only these last rounds;
    none if nothing is trained.
    """

    rounds: int = 0  # most rounds after the first pass; 0: no self-training
    few: float = 0.2  # seeds are few below this share of the smaller side's entities
    trained_rounds: int = 1  # the last rounds, which have all encoders
    least_gain: float = 0.08  # rounds of label propagation end if no more of the pairs are new
    threshold: float = 0.6  # a match becomes a pseudo-seed above this chance to be right
    epochs: int = 0  # of training in a round; 0: as many as without rounds
    features: int = 0  # of label propagation where seeds are few; 0: as many as elsewhere
    folds: int = 1  # runs of each encoder in a round, each without one part of the pseudo-seeds
    check: bool = True  # score a pseudo-seed only with the fold that did not train on it
    seed: int = 0  # of the folds, and of the order of ties

    def __post_init__(self) -> None:
        for name in ("rounds", "epochs", "features", "seed"):
            check_least(name, getattr(self, name), 0)
        for name in ("folds", "trained_rounds"):
            check_least(name, getattr(self, name), 1)
        for name in ("few", "threshold", "least_gain"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(
                    f"{name} must be a number in [0, 1]. Got {getattr(self, name)} instead."
                )

    def are_few(self, num_seeds: int, num_entities: Pair[int]) -> bool:
        """Whether seeds are few, so that rounds go on while they gain."""
        return num_seeds < self.few * min(num_entities)

    def recipe(self) -> dict[str, Any]:
        """The fields that the choice of pseudo-seeds depends on."""
        return {"threshold": self.threshold, "seed": self.seed}
