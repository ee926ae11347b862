"""`SamplingConfig`: settings of the samplers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clusterea.config.checks import check_choice, check_least
from clusterea.errors import InputError

ClassifierName = Literal["xgboost", "softmax"]


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """The settings of all samplers; each reads those it needs."""

    num_batches: int = 5  # K; 10 for IDS100K, 30 for DBP1M
    max_batch: int | None = 100_000  # entities of a side; a larger mini-batch is split further
    largest_share: float = 2.0  # largest mini-batch of a side, as a multiple of the mean
    classifier: ClassifierName = "softmax"  # of CMCS; the paper's is xgboost
    kmeans_starts: int = 10  # random starts of CMCS's k-means; the best is kept
    gcn_epochs: int = 800  # of ISCS's network; 1500 for IDS100K, 3000 for DBP1M
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("classifier", self.classifier, ClassifierName)
        for name in ("num_batches", "kmeans_starts", "gcn_epochs"):
            check_least(name, getattr(self, name), 1)
        if self.max_batch is not None:
            check_least("max_batch", self.max_batch, 1)
        check_least("seed", self.seed, 0)
        if not 1 < self.largest_share < float("inf"):
            raise InputError(
                f"largest_share must be a number in (1, inf). Got {self.largest_share} instead."
            )


def with_reverse(samplers: Sequence[str]) -> tuple[str, ...]:
    """The names without repetition, with `iscs-reverse` after `iscs`: the paper runs both."""
    named: list[str] = []
    for sampler in samplers:
        named += ["iscs", "iscs-reverse"] if sampler == "iscs" else [sampler]
    return tuple(dict.fromkeys(named))
