"""`FusionConfig`: how similarities are normalized and fused into one sparse matrix."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from clusterea.config.checks import check_choice, check_least, check_not_negative, check_positive

Outside = Literal["none", "best", "neighbors"]
Search = Literal["exact", "approximate"]


@dataclass(frozen=True, slots=True)
class FusionConfig:
    """The paper's section 4.4. Each switch that is off is a row of its ablation."""

    candidates: int = 50  # K_r: cells of a row, and of a column, that a view keeps
    hubness_neighbors: int = 10  # K_n: neighbours whose mean Sp-CSLS subtracts
    sinkhorn: bool = True  # off: a mini-batch's similarities are its cosines
    sinkhorn_rounds: int = 100  # K_s
    sinkhorn_temperature: float = 0.02  # the paper gives none; its release has 0.001
    outside: Outside = "neighbors"  # what an entity of a mini-batch may have instead of a partner
    global_sinkhorn: bool = False  # a view of all candidates at once, which the paper has not
    support_rounds: int = 0  # in which neighbors speak for the pairs of `global_sinkhorn`'s view
    support_weight: float = 2.0  # of what neighbors say; 0: nothing
    global_similarity: bool = True  # off: the mini-batches' similarities alone
    csls: bool = True  # off: neither the global nor the fused similarity is shifted
    search: Search = "exact"  # approximate: on a CPU, by lists; a GPU looks at all
    seed: int = 0  # of the order of ties

    def __post_init__(self) -> None:
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
