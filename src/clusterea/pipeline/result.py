"""`AlignmentResult`: the result of `align`, and methods to use it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from clusterea.config import Config
from clusterea.config.checks import check_bounds, check_least
from clusterea.errors import InputError, names_arguments
from clusterea.pipeline.learning import Fitted, fits, num_held_out
from clusterea.pipeline.previous import Previous
from clusterea.pipeline.store import Made
from clusterea.types import (
    Alignment,
    AlignmentTask,
    Answer,
    Benchmark,
    Embeddings,
    IntArray,
    Links,
    Metrics,
    Names,
    Pair,
    Partition,
    Similarity,
    StageCost,
)

if TYPE_CHECKING:
    import pandas
    import torch
    from torch import Tensor

    from clusterea.report.explanation import Explanation
    from clusterea.report.suggestions import Suggestions

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One round of self-training, with its pseudo-seeds."""

    found: Made[Links]
    num_new: int  # pseudo-seeds that the last round did not have
    fit: int = 0

    @classmethod
    def after(cls, rounds: Sequence[Round], found: Made[Links], fit: int = 0) -> Round:
        """The round after these, with the pseudo-seeds `found`."""
        before: set[tuple[int, ...]] = set()
        if rounds:
            before = set(map(tuple, rounds[-1].pseudo_seeds.tolist()))
        new = sum(tuple(link) not in before for link in found.value.pairs.tolist())
        return cls(found, new, fit)

    @property
    def pseudo_seeds(self) -> Tensor:
        """(n, 2): source entity, target entity."""
        return self.found.value.pairs


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlignmentResult:
    """The result of `align`, and its cost.

    Stored results of a run's folder are read when they are first used.
    """

    task: AlignmentTask
    config: Config
    # Of the last round of the first fit: train, train-2, …
    made_embeddings: Mapping[str, Made[Embeddings]]
    made_partitions: Mapping[str, Made[Partition]]  # of the first fit, by sampler
    made_similarity: Made[Similarity] | None  # None: the run stopped before
    made_alignment: Made[Alignment] | None
    timings: tuple[StageCost, ...] = ()
    rounds: tuple[Round, ...] = ()  # of self-training, in all fits
    benchmark: Benchmark | None = None  # names and test links, if given
    min_confidence: float = 0.0  # of the links in `alignment`
    top: int | None = None  # most links in `alignment`
    made_fits: tuple[Fitted, ...] = ()  # of each fit
    previous: Previous | None = None  # what was taken over from the run before
    _numbered: Benchmark | None = field(default=None, init=False)  # the cache of `named`

    @property
    def encodings(self) -> tuple[Pair[Tensor], ...]:
        """The embeddings of each encoder in the last round."""
        return tuple(made.value for made in self.made_embeddings.values())

    @property
    def embeddings(self) -> Pair[Tensor]:
        """The embeddings of the first encoder."""
        return next(iter(self.made_embeddings.values())).value

    @property
    def partitions(self) -> dict[str, Partition]:
        """The mini-batches of each sampler."""
        return {name: made.value for name, made in self.made_partitions.items()}

    @property
    def similarity(self) -> Similarity:
        """The fused similarity."""
        return _there(self.made_similarity, "fuse").value

    @property
    def all_links(self) -> Alignment:
        """All links that were found."""
        return _there(self.made_alignment, "match").value

    @property
    def alignment(self) -> Alignment:
        """The links, limited by `min_confidence` and `top`."""
        return self.all_links.bounded(self.min_confidence, self.top)

    @property
    def keys(self) -> dict[str, str]:
        """The artifact keys by their names in `run.json`."""
        named: dict[str, Made[Any] | None] = {
            **self.made_embeddings,
            **self.made_partitions,
            **{f"pseudo-{number + 1}": each.found for number, each in enumerate(self.rounds)},
        }
        for number, each in enumerate(self.made_fits, start=1):
            named |= {f"fuse-{number}": each.similarity, f"trust-{number}": each.trust}
            named |= {f"{name}-{number}": made for name, made in each.contents.items()}
            if each.trial is not each.similarity:
                named[f"trial-{number}"] = each.trial
        last = {"fuse": self.made_similarity, "match": self.made_alignment}
        return {name: made.key for name, made in {**named, **last}.items() if made is not None}

    @property
    def leaves(self) -> Previous:
        """What a warm restart takes over."""
        last = {each.fit: each.found.key for each in self.rounds}
        return Previous(
            tuple(last.get(fit) for fit in range(len(self.made_fits))),
            tuple(each.trained for each in self.made_fits),
            num_held_out(self.task, self.config, self._held_before)[0],
        )

    @property
    def _held_before(self) -> int:
        """How many seeds each fit of the run before held out; 0 if nothing was taken over."""
        return 0 if self.previous is None else self.previous.held

    @property
    def named(self) -> Benchmark:
        """The data with names; if `align` got only a task, names are numbers."""
        if self.benchmark is not None:
            return self.benchmark
        if self._numbered is None:
            object.__setattr__(self, "_numbered", numbered(self.task))
        assert self._numbered is not None
        return self._numbered

    def evaluate(
        self,
        test_links: IntArray | Tensor | None = None,
        device: torch.device | None = None,
    ) -> Metrics:
        """Hits@k, MRR, precision and recall on test links.

        Args:
            test_links: (n, 2) ids: source entity, target entity. Default: those of the benchmark.
            device: Where to compute; default: the device of the similarity.
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
            alignment=None if self.made_alignment is None else self.alignment,
        )

    def to_pandas(self) -> pandas.DataFrame:
        """A table of source, target and confidence or score, with names if they are known."""
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
            path: The file. An existing file is replaced.
            format: The format of the file.
            min_confidence: Leave out links with a lower confidence or, if it is not calibrated,
                score.
        """
        from clusterea.export import export

        check_bounds(min_confidence)
        kept, named = self.alignment.at_least(min_confidence), self.named
        export(kept, named.names, format, Path(path), labels=named.labels)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the report of `clusterea align`: one HTML file that needs no network."""
        from clusterea.pipeline.outputs import write_page

        metrics = self.evaluate() if len(self.named.test_links) else None
        write_page(Path(path), Path(path).stem, self, metrics)

    @names_arguments
    def explain(self, entity: str | int, limit: int = 12) -> Explanation:
        """The evidence for an entity's link, or its best candidates if it has none.

        Args:
            entity: The name of an entity of either graph, or its label.
            limit: Most pairs of neighbors, or candidates.
        """
        from clusterea.report.explanation import explained

        matching = self.config.matching
        return explained(
            self.named,
            self.all_links,
            self.alignment,
            lambda: self.similarity,
            self._with_dropped if matching.abstain and matching.held_out else None,
            str(entity),
            limit=limit,
        )

    @names_arguments
    def suggest(self, count: int = 50, answers: Sequence[Answer] = ()) -> Suggestions:
        """The pairs whose answers help most, and a random share of the links, to ask a person.

        Args:
            count: Most pairs.
            answers: Earlier answers, in their order. Their pairs are not asked again.
        """
        from clusterea.matching import questions
        from clusterea.report.suggestions import Suggestions

        check_least("--count", count, 1)
        alignment, named = self.alignment, self.named
        found = questions(self.similarity, alignment, self.task, count, answers=answers)
        return Suggestions(
            tuple(found), named.names, alignment.measure, alignment.confidence_note, named.labels
        )

    def _with_dropped(self) -> Alignment:
        """The links including those that abstaining dropped. Matches again."""
        from clusterea.pipeline.matched import matched

        config = replace(self.config, matching=replace(self.config.matching, abstain=False))
        return matched(
            self.task,
            fits(Made.of("", self.task), self.config, self._held_before),
            self.made_fits,
            self.similarity,
            config,
            self.similarity.values.device,
        )

    def _repr_html_(self) -> str:
        """The most confident links, for notebooks."""
        return self.alignment.to_html(None if self.benchmark is None else self.benchmark.names)

    def __repr__(self) -> str:
        seconds = sum(cost.seconds for cost in self.timings)
        found = "no links yet" if self.made_alignment is None else repr(self.alignment)
        return f"AlignmentResult({found}, {self.config!r}, {seconds:.1f} s)"


def numbered(task: AlignmentTask) -> Benchmark:
    """A benchmark from a task; names are numbers."""
    return Benchmark(
        task,
        task.seeds[:0],
        task.graphs.map(lambda graph: Names(map(str, range(graph.num_entities)))),
        task.graphs.map(lambda graph: Names(map(str, range(graph.num_relations)))),
    )


def _there(made: Made[Value] | None, stage: str) -> Made[Value]:
    if made is None:
        raise InputError(f"the run was stopped before `{stage}`, so there is no such result.")
    return made
