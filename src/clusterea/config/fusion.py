"""`FusionConfig`: how similarities are normalized and fused into one sparse matrix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any, Literal

from clusterea.config.checks import (
    check_choice,
    check_least,
    check_not_negative,
    check_positive,
    check_share,
)
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
    support_unit: float = 0.01  # evidence that doubles a pair's weight, before the exponent
    support_least: float = 1e-3  # pairs with a smaller Sinkhorn value get no evidence
    support_faint: float = 1e-6  # pairs with a smaller Sinkhorn value join in the last round only
    support_alone: float = 1e-3  # least chance of an entity to have no partner
    support_shared: float = 1e-3  # least number of edges that relation agreement is a share of
    search: Search = "exact"  # of nearest neighbors
    search_exact: float = 5e12  # approximate, on a GPU: pairs of entities up to which it is exact
    search_compared: int = 65536  # approximate, on a CPU: least entities that one is compared with
    search_recall: float = 0.975  # approximate, on a GPU: share of the neighbors to find
    search_sample: int = 64  # approximate: entities for each list that list centers are fitted to
    search_rounds: int = 10  # approximate: k-means rounds of the list centers
    search_joined: int = 50  # approximate, on a CPU: most further pairs of an entity, from a join
    search_hub: int = 100_000  # approximate, on a CPU: most pairs that two partners add
    seed: int = 0  # of the order of ties

    def __post_init__(self) -> None:
        named: Any = self.views  # JSON and TOML have lists, a caller from Python may give text
        named = named.split(",") if isinstance(named, str) else named
        object.__setattr__(self, "views", tuple(named))
        if not self.views or len(set(self.views)) < len(self.views):
            given = ",".join(self.views) or "none"
            raise InputError(f"views must be one or more names, each once. Got {given} instead.")
        check_choice("outside", self.outside, Outside)
        check_choice("search", self.search, Search)
        for name in ("candidates", "hubness_neighbors", "search_compared", "search_sample"):
            check_least(name, getattr(self, name), 1)
        for name in (
            "sinkhorn_rounds",
            "support_rounds",
            "search_rounds",
            "search_joined",
            "search_hub",
            "seed",
        ):
            check_least(name, getattr(self, name), 0)
        for name in ("sinkhorn_temperature", "support_unit", "support_alone", "support_shared"):
            check_positive(name, getattr(self, name))
        check_share("search_recall", self.search_recall)
        for name in ("search_exact", "support_weight", "support_least", "support_faint"):
            check_not_negative(name, getattr(self, name))

    def on(self, device_type: str, sizes: Iterable[int]) -> FusionConfig:
        """The settings that are really used on a device (cpu, cuda) for so many entities a side.

        A GPU searches exactly where that takes a few seconds.
        """
        is_exact = device_type != "cpu" and prod(sizes) <= self.search_exact
        return replace(self, search="exact") if is_exact else self

    def recipe(self) -> dict[str, Any]:
        """The fields that the result depends on: all of them."""
        return asdict(self)
