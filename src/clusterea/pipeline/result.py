"""`AlignmentResult`: what `align` found, and what can be done with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clusterea.config import Config, MatchingConfig
from clusterea.config.checks import check_bounds
from clusterea.errors import InputError, names_arguments
from clusterea.pipeline.measure import StageCost
from clusterea.types import (
    Alignment,
    AlignmentTask,
    Benchmark,
    IntArray,
    Metrics,
    Names,
    Pair,
    Partition,
    Similarity,
)

if TYPE_CHECKING:
    import pandas
    import torch
    from torch import Tensor

    from clusterea.report.explanation import Explanation


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One round of self-training: what it learned from beside the seeds."""

    pseudo_seeds: Tensor  # (n, 2)
    num_new: int  # that the round before did not have


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlignmentResult:
    """What `align` found, and what it cost."""

    task: AlignmentTask
    config: Config
    encodings: tuple[Pair[Tensor], ...]  # of the last round, by encoder
    partitions: Mapping[str, Partition]  # by sampler
    similarity: Similarity
    alignment: Alignment
    timings: tuple[StageCost, ...]
    rounds: tuple[Round, ...] = ()  # of self-training
    keys: Mapping[str, str] = field(default_factory=dict)  # stage → artifact
    benchmark: Benchmark | None = None  # that the task is of: names, and links to judge by
    _numbered: Benchmark | None = field(default=None, init=False)  # `named`, once it was made

    @property
    def embeddings(self) -> Pair[Tensor]:
        """Those of the first encoder."""
        return self.encodings[0]

    @property
    def named(self) -> Benchmark:
        """The data with names; where `align` got a task alone, entities are named by number."""
        if self.benchmark is not None:
            return self.benchmark
        if self._numbered is None:
            graphs = self.task.graphs
            numbered = Benchmark(
                self.task,
                self.task.seeds[:0],
                graphs.map(lambda graph: Names(map(str, range(graph.num_entities)))),
                graphs.map(lambda graph: Names(map(str, range(graph.num_relations)))),
            )
            object.__setattr__(self, "_numbered", numbered)
            return numbered
        return self._numbered

    def evaluate(
        self,
        test_links: IntArray | Tensor | None = None,
        device: torch.device | None = None,
    ) -> Metrics:
        """Hits, MRR, precision and recall, judged by links that no stage has seen.

        They are the benchmark's test links unless others are given.

        Args:
            test_links: (n, 2): source entity, target entity, by number.
            device: Where to compute; where the similarity is, if not given.
        """
        from clusterea.evaluation import evaluate

        if test_links is None:
            if self.benchmark is None or not len(self.benchmark.test_links):
                raise InputError(
                    "there are no test links to judge by; give evaluate some, or load the data "
                    "with test_links or seeds_share."
                )
            test_links = self.benchmark.test_links
        shape = tuple(np.shape(test_links))
        if shape != (0,) and shape[1:] != (2,):
            raise InputError(
                "test_links must have two columns, source and target entity. "
                f"Got shape {shape} instead."
            )
        return evaluate(
            self.similarity.to(device or self.similarity.values.device),
            test_links,
            self.task.seeds,
            degrees=self.task.graphs.source.degrees(),
            alignment=self.alignment,
        )

    def to_pandas(self) -> pandas.DataFrame:
        """A table of source, target and confidence, by name where names are known."""
        return self.alignment.to_pandas(None if self.benchmark is None else self.benchmark.names)

    @names_arguments
    def export(
        self,
        path: str | os.PathLike[str],
        format: str,  # noqa: A002
        *,
        min_confidence: float = 0.0,
    ) -> None:
        """Writes the links as one file: tsv, parquet, ntriples, sssom or oaei.

        Args:
            path: The file. One that is there is replaced.
            format: Which form it has.
            min_confidence: Leaves out links that are less sure.
        """
        from clusterea.export import export

        check_bounds(min_confidence)
        export(self.alignment.at_least(min_confidence), self.named.names, format, Path(path))

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the page that `clusterea align` makes: one HTML file that needs no network."""
        from clusterea.pipeline.outputs import page, self_training
        from clusterea.report import write_report

        benchmark = self.named
        metrics = self.evaluate().to_dict() if len(benchmark.test_links) else None
        data = page(
            Path(path).stem,
            benchmark,
            self.alignment,
            metrics,
            self.partitions,
            [cost.to_dict() for cost in self.timings],
            self.config.to_dict(),
            self_training(self.rounds, benchmark),
        )
        write_report(path, data)

    @names_arguments
    def explain(self, entity: str | int, limit: int = 12) -> Explanation:
        """The evidence for an entity's link, or its best candidates where it has none.

        Args:
            entity: Its name, on either side.
            limit: How many pairs of neighbors, or candidates, at most.
        """
        from clusterea.report.explanation import explained

        found = self.alignment
        return explained(
            self.named,
            found,
            found,
            lambda: self.similarity,
            self._chosen if self.config.matching.abstain else None,
            str(entity),
            limit=limit,
        )

    def _chosen(self) -> Alignment:
        """The links before those below the cut were left out."""
        from clusterea.pipeline.artifacts import Artifacts
        from clusterea.pipeline.encoding import held_out_stage

        matching, held = self.config.matching, None
        if not matching.rejoin:
            _, held, _ = held_out_stage(Artifacts(None), "", self.task, matching)
        return chosen_before_cut(self.task, self.similarity, matching, held)

    def _repr_html_(self) -> str:
        """For notebooks: the surest links."""
        return self.alignment.to_html(None if self.benchmark is None else self.benchmark.names)

    def __repr__(self) -> str:
        seconds = sum(cost.seconds for cost in self.timings)
        return f"AlignmentResult({self.alignment!r}, {self.config!r}, {seconds:.1f} s)"


def chosen_before_cut(
    task: AlignmentTask, similarity: Similarity, config: MatchingConfig, held: Tensor | None
) -> Alignment:
    """The links that the matching method chose, those below the cut too. It is run again.

    Args:
        task: With all seeds.
        similarity: What the links were made of.
        config: How they were made.
        held: (n, 2): seeds that were held out and never learned from, if any.
    """
    from clusterea.pipeline.artifacts import Artifacts
    from clusterea.pipeline.stages import Trial, match_stage

    _, chosen = match_stage(
        Artifacts(None),
        "",
        task,
        lambda: similarity,
        replace(config, abstain=False),
        similarity.values.device,
        None if held is None else Trial(held),
    )
    return chosen
