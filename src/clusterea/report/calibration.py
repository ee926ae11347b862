"""Links by confidence, and their precision by confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clusterea.report.data import RIGHT, UNKNOWN, WRONG

NORMAL_95 = 1.96  # standard deviations around the mean with 95 % of a normal distribution


@dataclass(frozen=True, slots=True)
class ConfidenceBin:
    """Links whose confidence lies in [least, most), in the last bin also at `most`."""

    least: float
    most: float
    links: int
    right: int
    wrong: int

    @property
    def unknown(self) -> int:
        return self.links - self.right - self.wrong


@dataclass(frozen=True, slots=True)
class Reliability:
    """A group of links of similar confidence: mean confidence and precision."""

    confidence: float  # mean
    precision: float
    low: float  # Wilson's 95 % interval of the precision
    high: float
    links: int


def histogram(
    confidence: NDArray[Any], correctness: NDArray[np.int8] | None, bins: int = 20
) -> tuple[ConfidenceBin, ...]:
    """The number of links in bins of equal width over [0, 1]."""
    verdicts = np.full(len(confidence), UNKNOWN) if correctness is None else correctness

    def counts(of: NDArray[Any]) -> list[int]:
        return [int(number) for number in np.histogram(of, bins=bins, range=(0, 1))[0]]

    edges = np.linspace(0, 1, bins + 1).tolist()
    return tuple(
        ConfidenceBin(*row)
        for row in zip(
            edges[:-1],
            edges[1:],
            counts(confidence),
            counts(confidence[verdicts == RIGHT]),
            counts(confidence[verdicts == WRONG]),
            strict=True,
        )
    )


def reliability(
    confidence: NDArray[Any], correctness: NDArray[np.int8], groups: int = 10
) -> tuple[Reliability, ...]:
    """Judged links in groups of about equal size, by ascending confidence.

    Groups of equal width would be mostly empty, since most confidences are near 1. Links of the
    same confidence stay in one group.
    """
    known = correctness != UNKNOWN
    sure, right = confidence[known], correctness[known] == RIGHT
    if not len(sure):
        return ()
    inner = np.unique(np.quantile(sure, np.linspace(0, 1, groups + 1)[1:-1], method="nearest"))
    group = np.searchsorted(inner, sure, side="right")
    links = np.bincount(group)
    means = np.bincount(group, weights=sure) / np.maximum(links, 1)
    hits = np.bincount(group, weights=right)
    return tuple(
        Reliability(float(mean), *_wilson(int(hit), int(number)), int(number))
        for mean, hit, number in zip(means, hits, links, strict=True)
        if number
    )


def _wilson(hits: int, number: int) -> tuple[float, float, float]:
    """The share, and Wilson's 95 % interval, which stays in [0, 1]."""
    share, z = hits / number, NORMAL_95
    middle = (share + z**2 / (2 * number)) / (1 + z**2 / number)
    half = z * (share * (1 - share) / number + z**2 / (4 * number**2)) ** 0.5 / (1 + z**2 / number)
    return share, max(0.0, middle - half), min(1.0, middle + half)
