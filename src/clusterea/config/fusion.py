"""`FusionConfig`: how similarities are normalized and fused into one sparse matrix."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from clusterea.config.checks import check_choice, check_least, check_not_negative, check_positive
from clusterea.errors import InputError

Outside = Literal["none", "best", "neighbors"]
Search = Literal["exact", "approximate"]


@dataclass(frozen=True, slots=True)
class FusionConfig:
    """Section 4.4 of the paper: which views are computed, how, and how they are combined."""

    views: tuple[str, ...] = ("local", "support")  # added up; those of `clusterea.fusion.VIEWS`
    candidates: int = 50  # K_r: cells that a view keeps of each row and of each column
    hubness_neighbors: int = 10  # K_n: nearest neighbors whose mean similarity Sp-CSLS subtracts
    csls: bool = False  # apply Sp-CSLS to the `global` view and to the sum, as the paper does
    sinkhorn_rounds: int = 100  # K_s
    sinkhorn_temperature: float = 0.02  # the paper gives none; its release has 0.001
    outside: Outside = "neighbors"  # in Sinkhorn, the similarity that stands for having no partner
    support_rounds: int = 2  # rounds of neighbor evidence in the `support` view
    support_weight: float = 2.0  # exponent of the neighbor evidence; 0: ignore it
    search: Search = "exact"  # of nearest neighbors; approximate: on a CPU only, a GPU is exact
    seed: int = 0  # of the order of ties

    def __post_init__(self) -> None:
        object.__setattr__(self, "views", tuple(self.views))  # JSON and TOML have lists
        if not self.views or len(set(self.views)) < len(self.views):
            given = ",".join(self.views) or "none"
            raise InputError(f"views must be one or more names, each once. Got {given} instead.")
        check_choice("outside", self.outside, Outside)
        check_choice("search", self.search, Search)
        for name in ("candidates", "hubness_neighbors"):
            check_least(name, getattr(self, name), 1)
        for name in ("sinkhorn_rounds", "support_rounds", "seed"):
            check_least(name, getattr(self, name), 0)
        check_positive("sinkhorn_temperature", self.sinkhorn_temperature)
        check_not_negative("support_weight", self.support_weight)

    def recipe(self) -> dict[str, Any]:
        """The fields that the result depends on: all of them."""
        return asdict(self)
