"""`decided`: data with what a person decided, in any form that a caller may give it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from clusterea.data.decisions import read_answers
from clusterea.data.in_memory import PathLike, is_path
from clusterea.errors import InputError, cut
from clusterea.types import Answer, Benchmark, Decisions

Row: TypeAlias = Answer | tuple[str | int, str | int, str]
DecisionSource: TypeAlias = PathLike | Decisions | Iterable[Row]


def decided(benchmark: Benchmark, decisions: DecisionSource) -> Benchmark:
    """The data with these decisions.

    Args:
        benchmark: The data without them.
        decisions: A file, answers, rows of source, target and "same" or "different", or the
            decisions themselves.
    """
    if not isinstance(decisions, Decisions):
        if is_path(decisions):
            answers = read_answers(Path(decisions), benchmark.names).answers
        else:
            answers = [_answer(row, benchmark) for row in decisions]  # type: ignore[union-attr]
        decisions = Decisions.of(answers)
    found = benchmark.with_decisions(decisions)
    if len(benchmark.task.all_seeds) and not len(found.task.all_seeds):
        raise InputError(
            "the decisions reject every seed, so that nothing is left to learn from. Accept a "
            "pair, or give other seeds."
        )
    return found


def _answer(row: object, benchmark: Benchmark) -> Answer:
    if isinstance(row, Answer):
        return row
    if not (isinstance(row, tuple | list) and len(row) == 3):
        raise InputError(
            "decisions must be a file, answers, or rows of source, target and same or different. "
            f"Got {cut(repr(row))} instead."
        )
    *ends, word = row
    if word not in ("same", "different"):
        raise InputError(f"a decision must be same or different. Got {cut(repr(word))} instead.")
    source, target = (
        int(names.ids_of([str(name)])[0]) for names, name in zip(benchmark.names, ends, strict=True)
    )
    for side, name, number in (("source", ends[0], source), ("target", ends[1], target)):
        if number < 0:
            raise InputError(f"no entity of the {side} graph is called {cut(repr(name))}.")
    return Answer(source, target, word)
