"""`Metrics`: the accuracy of an alignment, for both directions and both candidate sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from clusterea.types.arrays import check_count
from clusterea.types.html import html_table
from clusterea.types.pair import Pair
from clusterea.types.rounding import rounded


def _check_rate(value: float, name: str) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be a fraction in [0, 1]. Got {value!r} instead.")


@dataclass(frozen=True, slots=True)
class Ranking:
    """Hits@k and MRR of one direction; for ties, their expected value."""

    hits: Mapping[int, float]  # k → expected share of test links ranked k or better
    mrr: float

    def __post_init__(self) -> None:
        _check_rate(self.mrr, "mrr")
        for k, share in self.hits.items():
            _check_rate(share, f"hits@{k}")
        shares = [self.hits[k] for k in sorted(self.hits)]
        if any(larger < smaller for smaller, larger in pairwise(shares)):
            raise ValueError(f"hits must not decrease as k grows. Got {dict(self.hits)} instead.")
        object.__setattr__(self, "hits", MappingProxyType(dict(self.hits)))

    def to_dict(self) -> dict[str, float]:
        return {**{f"hits@{k}": self.hits[k] for k in sorted(self.hits)}, "mrr": self.mrr}


@dataclass(frozen=True, slots=True)
class MatchingScores:
    """Precision, recall and F1 of links."""

    precision: float
    recall: float

    def __post_init__(self) -> None:
        _check_rate(self.precision, "precision")
        _check_rate(self.recall, "recall")

    @property
    def f1(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    def to_dict(self) -> dict[str, float]:
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1}


@dataclass(frozen=True, slots=True)
class DegreeBucket:
    """Source-to-target ranking of the test links whose source has a degree in [least, most]."""

    least: int
    most: int
    test_links: int
    ranking: Ranking

    def to_dict(self) -> dict[str, Any]:
        return {
            "least": self.least,
            "most": self.most,
            "test_links": self.test_links,
            **self.ranking.to_dict(),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Metrics:
    """The result of `evaluate`. `Pair.source` is source to target, `Pair.target` the reverse."""

    test_candidates: Pair[Ranking]  # ranked among the test links' entities, as usual in papers
    all_candidates: Pair[Ranking]  # ranked among all entities without a seed
    test_links: int
    missing: int  # test links without a cell
    matching: MatchingScores | None = None
    by_degree: tuple[DegreeBucket, ...] = ()

    def __post_init__(self) -> None:
        check_count(self.test_links, "test_links")
        check_count(self.missing, "missing")
        if self.missing > self.test_links:
            raise ValueError(
                f"missing must be at most test_links. Got {self.missing} of {self.test_links}."
            )

    def to_dict(self) -> dict[str, Any]:
        """The contents of `metrics.json`; rates are fractions."""
        out: dict[str, Any] = {
            "test_candidates": _directions(self.test_candidates),
            "all_candidates": _directions(self.all_candidates),
        }
        if self.matching is not None:
            out["matching"] = self.matching.to_dict()
        out["by_degree"] = [bucket.to_dict() for bucket in self.by_degree]
        return {**out, "missing": self.missing, "test_links": self.test_links}

    def _repr_html_(self) -> str:
        """Both directions and both candidate sets, for notebooks."""
        kinds = {"test links' entities": self.test_candidates, "all": self.all_candidates}
        rows = [
            (way, among, *ranking.to_dict().values())
            for among, pair in kinds.items()
            for way, ranking in zip(("source to target", "target to source"), pair, strict=True)
        ]
        title = f"Metrics on {self.test_links:,} test links"
        if self.matching is not None:
            scores = (
                f"{name} {rounded(value, 3)}" for name, value in self.matching.to_dict().items()
            )
            title += f": {', '.join(scores)}"
        return html_table(
            title, ("direction", "candidates", *self.test_candidates.source.to_dict()), rows
        )

    def __repr__(self) -> str:
        ranking = self.test_candidates.source
        shown = ", ".join(f"hits@{k}={rounded(ranking.hits[k], 3)}" for k in sorted(ranking.hits))
        return f"Metrics({shown}, mrr={rounded(ranking.mrr, 3)} on {self.test_links:,} test links)"


def _directions(rankings: Pair[Ranking]) -> dict[str, dict[str, float]]:
    return {
        "source_to_target": rankings.source.to_dict(),
        "target_to_source": rankings.target.to_dict(),
    }
