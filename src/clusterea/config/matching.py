"""`MatchingConfig`: how an alignment is made of a similarity."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from clusterea.config.checks import check_choice, check_least

MethodName = Literal["one-to-one", "greedy", "mutual", "best", "stable", "hungarian"]


@dataclass(frozen=True, slots=True)
class MatchingConfig:
    """What `match` does."""

    method: MethodName = "one-to-one"
    seed: int = 0  # of the order of ties

    def __post_init__(self) -> None:
        check_choice("matching method", self.method, MethodName)
        check_least("seed", self.seed, 0)

    def recipe(self) -> dict[str, Any]:
        """The fields that the result depends on: all of them."""
        return asdict(self)
