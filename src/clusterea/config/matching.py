"""`MatchingConfig`: how an alignment is made of a similarity."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from clusterea.config.checks import check_choice, check_least
from clusterea.errors import InputError

MethodName = Literal["one-to-one", "greedy", "mutual", "best", "stable", "hungarian"]


@dataclass(frozen=True, slots=True)
class MatchingConfig:
    """What `match` does."""

    method: MethodName = "one-to-one"
    held_out: float = 0.0  # share of seeds held out to fit the confidence; more if they are few
    fits: int = 2  # where seeds are few: runs of everything, with other seeds held out; 1 or 2
    abstain: bool = True  # drop links that are too unsure; only where `held_out` is not 0
    seed: int = 0  # of the order of ties

    def __post_init__(self) -> None:
        check_choice("matching method", self.method, MethodName)
        if not 0 <= self.held_out < 1:
            raise InputError(f"held_out must be a number in [0, 1). Got {self.held_out} instead.")
        if self.fits not in (1, 2):
            raise InputError(f"fits must be 1 or 2. Got {self.fits} instead.")
        check_least("seed", self.seed, 0)

    def recipe(self) -> dict[str, Any]:
        """The fields that the result depends on, beside the similarities of all fits."""
        return {name: value for name, value in asdict(self).items() if name != "fits"}
