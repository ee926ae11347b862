"""`SamplingConfig`: how both graphs are cut into mini-batches."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from clusterea.config.checks import check_choice, check_least, check_positive
from clusterea.errors import InputError

ClassifierName = Literal["xgboost", "softmax"]
# Settings that begin so belong to one sampler.
OWNERS = {"classifier": "cmcs", "kmeans": "cmcs", "gcn": "iscs", "smoothing": "iscs"}


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """The settings of all samplers; each takes those it needs."""

    num_batches: int = 5  # K; 10 for IDS100K, 30 for DBP1M
    max_batch: int | None = 100_000  # entities of a side: beyond, a mini-batch is split further
    largest_share: float = 2.0  # no mini-batch has more entities of a side than this times the mean
    classifier: ClassifierName = "softmax"  # of CMCS; the paper's is xgboost
    kmeans_rounds: int = 300
    kmeans_tolerance: float = 1e-4
    kmeans_starts: int = 10  # of which the one with the nearest centers goes on
    gcn_units: int = 16  # of ISCS's hidden layer
    gcn_epochs: int = 800  # 1500 for IDS100K, 3000 for DBP1M
    gcn_rate: float = 0.01
    smoothing: float = 0.95  # how much a node's label follows its neighbours' in each round
    smoothing_rounds: int = 30  # of ISCS's labels, after its network
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("classifier", self.classifier, ClassifierName)
        for name in ("num_batches", "kmeans_rounds", "kmeans_starts", "gcn_units", "gcn_epochs"):
            check_least(name, getattr(self, name), 1)
        if self.max_batch is not None:
            check_least("max_batch", self.max_batch, 1)
        for name in ("seed", "smoothing_rounds"):
            check_least(name, getattr(self, name), 0)
        if not 0 <= self.smoothing <= 1:
            raise InputError(f"smoothing must be a number in [0, 1]. Got {self.smoothing} instead.")
        check_positive("kmeans_tolerance", self.kmeans_tolerance)
        check_positive("gcn_rate", self.gcn_rate)
        if not 1 < self.largest_share < float("inf"):
            raise InputError(
                f"largest_share must be a number in (1, inf). Got {self.largest_share} instead."
            )

    def recipe(self, sampler: str) -> dict[str, Any]:
        """The fields that a sampler's result depends on."""
        others = [prefix for prefix, owner in OWNERS.items() if not sampler.startswith(owner)]
        return {
            name: value
            for name, value in asdict(self).items()
            if not name.startswith(tuple(others))
        }
