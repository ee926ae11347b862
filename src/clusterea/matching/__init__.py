"""Matching methods: from a similarity to an alignment. A new one is a line in `MATCHERS`."""

from __future__ import annotations

from collections.abc import Callable

from clusterea.errors import look_up
from clusterea.matching.best import best
from clusterea.matching.calibrated import (
    Trial,
    calibrated,
    chances,
    fit_confidence,
    supported,
)
from clusterea.matching.cells import Cells, OpenCells
from clusterea.matching.features import Gains, edges_of, has_matched_neighbors, link_features
from clusterea.matching.greedy import greedy
from clusterea.matching.hungarian import hungarian
from clusterea.matching.mutual import mutual
from clusterea.matching.one_to_one import one_to_one
from clusterea.matching.pseudo_seeds import pseudo_seeds
from clusterea.matching.questions import questions
from clusterea.matching.stable import stable

__all__ = [
    "MATCHERS",
    "Cells",
    "Gains",
    "OpenCells",
    "Trial",
    "calibrated",
    "chances",
    "edges_of",
    "find_matcher",
    "fit_confidence",
    "has_matched_neighbors",
    "link_features",
    "pseudo_seeds",
    "questions",
    "supported",
]

Matcher = Callable[[OpenCells], Cells]  # the cells to choose from → those chosen
MATCHERS: dict[str, Matcher] = {
    "one-to-one": one_to_one,
    "greedy": greedy,
    "mutual": mutual,
    "best": best,
    "stable": stable,
    "hungarian": hungarian,
}


def find_matcher(name: str) -> Matcher:
    """The matching method called `name`. The error for an unknown name lists the known ones."""
    return look_up("matching", name, MATCHERS)
