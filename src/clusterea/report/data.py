"""`ReportData`: the data of a report, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clusterea.report.evidence import Support
from clusterea.types import Measure, Pair, StageCost

RIGHT, WRONG, UNKNOWN = 1, 0, -1  # verdicts of the test links on a link

Drawn = Literal["all", "most", "least", "random"]


@dataclass(frozen=True, slots=True)
class GraphSize:
    """The size of one graph."""

    entities: int
    relations: int
    triples: int


@dataclass(frozen=True, slots=True)
class MiniBatches:
    """The mini-batches of one sampler."""

    sampler: str
    sizes: Pair[tuple[int, ...]]  # entities in mini-batch 0, 1, …
    overlap: Mapping[str, float] | None = None  # kind of links → overlap


@dataclass(frozen=True, slots=True)
class Match:
    """One link and its evidence."""

    link: int  # its index among all links
    entities: Pair[str]
    confidence: float
    right: bool | None = None  # None: not judged
    truth: str | None = None  # the right target, if the match is wrong and a test link has it
    drawn: Drawn = "all"  # why it is in the sample
    num_neighbors: Pair[int] = field(default_factory=lambda: Pair(0, 0))
    num_supports: int = 0  # `supports` may have fewer
    supports: tuple[Support[str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReportData:
    """The data for `write_report`. Fields with a default are optional."""

    title: str
    sizes: Pair[GraphSize]
    num_seeds: int
    names: Pair[pa.Array]  # (links,) each: the source and the target of every link
    confidence: NDArray[np.floating[Any]]  # (links,)
    measure: Measure  # what the page calls the confidence: `Alignment.measure`
    confidence_note: str  # `Alignment.confidence_note`
    unmatched: Pair[int]
    num_test_links: int = 0
    correctness: NDArray[np.int8] | None = None  # (links,): RIGHT, WRONG or UNKNOWN
    metrics: Mapping[str, Any] | None = None  # in the shape of metrics.json
    stages: tuple[StageCost, ...] = ()
    mini_batches: tuple[MiniBatches, ...] = ()
    matches: tuple[Match, ...] = ()  # the links with evidence: all, or a sample
    labels: Pair[pa.Array] | None = None  # (links,) each, as `names`; null where there is none
    # Entity → label, of each side, for the entities in `matches` and in their evidence.
    match_labels: Pair[Mapping[str, str]] = field(default_factory=lambda: Pair({}, {}))
    seeds_from: Mapping[str, int] = field(default_factory=dict)  # origin → number of seeds
    # Of self-training: column → value. A float in [0, 1] is a share, unless it is named …seconds.
    rounds: tuple[Mapping[str, float | int | str], ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.confidence.ndim != 1:
            raise ValueError(
                f"confidence must have shape (n,). Got {self.confidence.shape} instead."
            )
        for what, texts in (("names", self.names), ("labels", self.labels or self.names)):
            if (lengths := texts.map(len)) != Pair(self.num_links, self.num_links):
                raise ValueError(
                    f"{what} must have {self.num_links} sources and targets. "
                    f"Got {lengths.source} and {lengths.target} instead."
                )
        if self.correctness is not None and self.correctness.shape != self.confidence.shape:
            raise ValueError(
                f"correctness must have shape {self.confidence.shape}. "
                f"Got {self.correctness.shape} instead."
            )

    @property
    def num_links(self) -> int:
        return len(self.confidence)

    @property
    def has_labels(self) -> bool:
        """Whether an entity of a link has a label."""
        return self.labels is not None and any(side.null_count < len(side) for side in self.labels)
