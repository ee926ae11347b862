"""`NamesConfig`: settings of the encoder of names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from clusterea.config.checks import check_least

NAMES = "names"  # the encoder that compares names


@dataclass(frozen=True, slots=True)
class NamesConfig:
    """The encoder `names`, for data with names. It needs no training."""

    dimensions: int = 1024  # of the random projection of the character n-grams
    translates: bool = True  # also learn from pairs which n-grams of two languages correspond
    seed: int = 0

    def __post_init__(self) -> None:
        check_least("dimensions", self.dimensions, 8)
        check_least("seed", self.seed, 0)

    @property
    def model(self) -> str:
        return NAMES

    def recipe(self) -> dict[str, Any]:
        """The fields that the vectors of names depend on."""
        return {"model": self.model, "dimensions": self.dimensions, "seed": self.seed}
