"""The answers of a person that commands take into account."""

from __future__ import annotations

from pathlib import Path

from rich.markup import escape

from clusterea.cli.console import ERRORS
from clusterea.data.decisions import read_answers
from clusterea.data.given_decisions import decided
from clusterea.errors import shown_path
from clusterea.review.answers import answers_of
from clusterea.types import Benchmark, Decisions
from clusterea.workspace import DECISIONS


def with_answers(
    benchmark: Benchmark, given: Path | None, run: Path, *, quiet: bool = False
) -> Benchmark:
    """The data with the answers in the file that was given, or in the run's folder, if any.

    Unless quiet, it prints how many there are on standard error.
    """
    unknown = 0
    if given is not None:
        read = read_answers(given, benchmark.names)
        answers, unknown = read.answers, read.unknown
    else:
        answers = answers_of(run, benchmark)
    if not answers:
        return benchmark
    if not quiet:
        decisions = Decisions.of(answers)
        alone = sum(map(len, decisions.alone))
        told = (
            f"Answers: {len(decisions.accepted):,} pairs accepted, {len(decisions.rejected):,} "
            f"rejected, {alone:,} entities without a counterpart "
            f"({shown_path(given or run / DECISIONS)})."
        )
        if unknown:
            told += f" {unknown:,} answers about entities that the graphs lack are left out."
        ERRORS.print(escape(told), soft_wrap=True)
    return decided(benchmark, answers)
