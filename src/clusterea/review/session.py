"""`Session`: questions about the links of a run, one at a time, and a person's answers."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, get_args

from clusterea.errors import InputError
from clusterea.report.readable import percent
from clusterea.review.context import Context
from clusterea.review.view import View, Views
from clusterea.types import Answer, Decisions, Question
from clusterea.workspace import DECISIONS

if TYPE_CHECKING:
    from clusterea.pipeline import AlignmentResult

BLOCK = 100  # questions that are chosen at once
AHEAD = 25  # questions that are left when the next block is chosen, so that nobody waits for it
MORE = 20  # answers, of which the progress says what they would change
FEW = 20  # answers about random links, below which precision is not told
HARDLY = 0.01  # a change of precision's interval that is not worth more answers
LONGEST_COMMENT = 2000  # characters

Pairing: TypeAlias = tuple[int, int]  # source entity, target entity
Key: TypeAlias = tuple[int | None, int | None]  # of an answer
Said: TypeAlias = Literal["same", "different", "unsure", "none-source", "none-target"]


class Log(Protocol):
    """The answers of all sessions, in a file."""

    @property
    def answers(self) -> list[Answer]: ...
    @property
    def decisions(self) -> Decisions: ...
    def append(self, *answers: Answer) -> None: ...


@dataclass(frozen=True, slots=True)
class Precision:
    """The estimated precision with its interval, and the interval after more answers."""

    value: float
    low: float
    high: float
    sampled: int  # answers about random links
    later_half_width: float  # of the interval, after MORE answers about random links


# The count, answers so far, and questions that will be asked before.
Ask: TypeAlias = Callable[[int, Sequence[Answer], Sequence[Question]], list[Question]]
Judge: TypeAlias = Callable[[Sequence[Answer]], Precision]


class Session:
    """Asks about a run's links, and keeps the answers. It has no web code.

    Answers of other sessions and processes count as well: their pairs are not asked about again.
    """

    def __init__(
        self,
        result: AlignmentResult,
        log: Log,
        ask: Ask,
        judge: Judge,
        *,
        author: str | None = None,
        blind: bool = False,
    ) -> None:
        self.blind = blind
        self._task = result.task
        self._alignment = result.alignment
        self._log = log
        self._ask = ask
        self._judge = judge
        self._author = getpass.getuser() if author is None else author
        self._context = Context(result.task, result.alignment)
        self._views = Views(
            result.named, result.alignment, result.similarity, self._context, blind=blind
        )
        self._queue: list[Question] = []
        self._worker = ThreadPoolExecutor(1)
        self._ahead: Future[list[Question]] | None = None  # the next block
        self._asked: dict[Pairing, Question] = {}
        self._given: list[tuple[Question, tuple[Answer, ...], Decisions]] = []

    # ---- questions

    def next(self, after: Pairing | None = None) -> View | None:
        """The next question without an answer; None if there is none.

        Args:
            after: Leave out the questions up to this one, as to skip it.
        """
        begin = 0
        for number, each in enumerate(self._queue):
            if (each.source, each.target) == after:
                begin = number + 1
        left = self._open(self._queue[begin:])
        if not left:
            for block in self._blocks():
                left = self._open([each for each in block if (each.source, each.target) != after])
                if left:
                    self._queue = block
                    break
        if not left:
            return None
        if len(left) <= AHEAD and self._ahead is None:
            self._ahead = self._worker.submit(self._ask, BLOCK, self._log.answers, left)
        return self._shown(left[0])

    def _blocks(self) -> Iterator[list[Question]]:
        """The block that was chosen ahead, then one by the newest answers."""
        if self._ahead is not None:
            ahead, self._ahead = self._ahead, None
            yield ahead.result()
        yield self._ask(BLOCK, self._log.answers, ())

    def look(self, source: int, target: int) -> View:
        """Two entities as a question shows them, to compare another candidate."""
        self._check("source", source)
        self._check("target", target)
        self._follow()
        return self._views.pair(source, target)

    def _open(self, questions: Sequence[Question]) -> list[Question]:
        """Those that are not answered yet, by whomever."""
        if not questions:
            return []
        said = _last(self._log.answers)
        decisions = self._log.decisions
        sources = {*decisions.accepted[:, 0].tolist(), *decisions.alone.source.tolist()}
        targets = {*decisions.accepted[:, 1].tolist(), *decisions.alone.target.tolist()}

        def is_open(each: Question) -> bool:
            before = said.get((each.source, each.target))
            is_said = before is not None and before.verdict != "undone"
            return not is_said and each.source not in sources and each.target not in targets

        return [*filter(is_open, questions)]

    def _shown(self, question: Question) -> View:
        self._follow()
        source, target = question.source, question.target
        self._asked[source, target] = question
        return {
            **self._views.pair(source, target),
            "candidates": self._views.candidates(source, target),
            "random": question.is_random,
        }

    def _follow(self) -> None:
        """Shows the context as of the newest answers."""
        self._context.decide(self._log.decisions)

    # ---- answers

    def answer(
        self,
        question: Pairing | Question,
        verdict: Said,
        target: int | None = None,
        comment: str = "",
        *,
        is_random: bool = False,
    ) -> View:
        """Keeps an answer, and returns what the run says about the pair.

        The same answer given again changes nothing, so it can be sent twice.

        Args:
            question: The pair that was asked about.
            verdict: The answer. `none-source` says that the source entity has no counterpart.
            target: Another candidate, if the answer is about that instead. If it is the same as
                the source entity, the pair that was asked about is not.
            comment: For the file.
            is_random: Whether the question was of the random share, if this session did not ask it.
        """
        if isinstance(question, Question):
            asked = question
        else:
            known = self._asked.get(question)
            asked = known or Question(*question, 0.0, is_link=False, is_random=is_random)
        self._check_answer(asked, verdict, target, comment)
        given = self._answers(asked, verdict, target, " ".join(comment.split()))
        said = _last(self._log.answers)
        before = self._log.decisions
        if any(not _repeats(each, said.get((each.source, each.target))) for each in given):
            self._log.append(*given)
        self._given.append((asked, given, before))
        about = asked.target if target is None else target
        return {
            "pair": self._views.named(asked.source, about),
            "verdict": verdict,
            "found": self._views.found(asked.source, about),
        }

    def undo(self) -> View | None:
        """Takes back the last answer of this session, and returns its question; None: none is left.

        Pairs that the answer replaced are accepted again.
        """
        if not self._given:
            return None
        question, given, before = self._given.pop()
        back = [replace(each, verdict="undone", comment="", date=_today()) for each in given]
        self._log.append(*back)
        own = {(each.source, each.target) for each in given}
        held = {*map(tuple, self._log.decisions.accepted.tolist())}
        lost = [pair for pair in map(tuple, before.accepted.tolist()) if pair not in held | own]
        if lost:
            said = _last(self._log.answers)
            self._log.append(*(said[pair] for pair in lost if pair in said))
        pair = (question.source, question.target)
        self._queue = [
            question,
            *(each for each in self._queue if (each.source, each.target) != pair),
        ]
        return self._shown(question)

    def _answers(
        self, asked: Question, verdict: Said, target: int | None, comment: str
    ) -> tuple[Answer, ...]:
        """The answers that a verdict stands for; the last one is what the person said."""

        def one(source: int | None, target: int | None, verdict: str, note: str = "") -> Answer:
            is_asked = (source, target) == (asked.source, asked.target)
            return Answer(
                *(source, target, verdict, self._author, _today(), note),  # type: ignore[arg-type]
                is_random=asked.is_random and is_asked,
            )

        pair = (asked.source, asked.target)
        if verdict == "none-source":
            return one(*pair, "different"), one(asked.source, None, "none", comment)
        if verdict == "none-target":
            return one(*pair, "different"), one(None, asked.target, "none", comment)
        if target is None or target == asked.target:
            return (one(*pair, verdict, comment),)
        other = one(asked.source, target, verdict, comment)
        return (one(*pair, "different"), other) if verdict == "same" else (other,)

    def _check_answer(
        self, asked: Question, verdict: str, target: int | None, comment: str
    ) -> None:
        if verdict not in get_args(Said):
            raise InputError(
                f"verdict must be one of {', '.join(get_args(Said))}. Got {verdict!r} instead."
            )
        if target is not None and verdict.startswith("none"):
            raise InputError("an entity without a counterpart has no other candidate.")
        if len(comment) > LONGEST_COMMENT:
            raise InputError(
                f"a comment must have at most {LONGEST_COMMENT:,} characters. "
                f"Got {len(comment):,} instead."
            )
        self._check("source", asked.source)
        self._check("target", asked.target)
        if target is not None:
            self._check("target", target)

    def _check(self, side: Literal["source", "target"], entity: int) -> None:
        sizes = self._task.num_entities
        size = sizes.source if side == "source" else sizes.target
        if not 0 <= entity < size:
            raise InputError(f"{side} must be an entity in [0, {size}). Got {entity} instead.")

    # ---- progress

    def progress(self) -> View:
        """The numbers of answers, how sure the rest is, and whether to go on."""
        answers, decisions = self._log.answers, self._log.decisions
        said = [each for each in _last(answers).values() if each.verdict != "undone"]
        answered = {(each.source, each.target) for each in said}
        links = len(self._alignment.links)
        known = [sure for pair in answered if (sure := self._views.confidence(*pair)) is not None]
        total = float(self._alignment.confidence.double().sum())
        left = links - len(known)
        precision = self._judge(answers)
        return {
            "answered": sum(None not in key for key in answered),
            "accepted": len(decisions.accepted),
            "rejected": len(decisions.rejected),
            "unsure": sum(each.verdict == "unsure" for each in said),
            "alone": sum(map(len, decisions.alone)),
            "links": links,
            "rest": (total - sum(known)) / left if left else None,
            "measure": self._alignment.measure,
            "precision": asdict(precision) if precision.sampled else None,
            "advice": _advice(precision),
            "can_undo": bool(self._given),
        }


def open_session(
    folder: Path, *, author: str | None = None, blind: bool = False, seed: int = 0
) -> Session:
    """A session on the run in a folder; the answers are in its `decisions.sssom.tsv`.

    Args:
        folder: The run's folder.
        author: Who answers; default: the name of the user.
        blind: Views do not show what the run found, until it is answered.
        seed: Of the random share of the questions.
    """
    from clusterea.evaluation.precision import now_and_later
    from clusterea.matching.questions import questions
    from clusterea.pipeline import load_run
    from clusterea.review.log import DecisionLog

    result = load_run(folder, need="match")
    alignment = result.alignment
    log = DecisionLog(folder / DECISIONS, result.named.names, result.named.labels)
    log.prepare()

    def ask(count: int, answers: Sequence[Answer], pending: Sequence[Question]) -> list[Question]:
        return questions(
            result.similarity,
            alignment,
            result.task,
            count,
            answers=answers,
            pending=pending,
            seed=seed,
        )

    def judge(answers: Sequence[Answer]) -> Precision:
        now, later = now_and_later(alignment, answers, MORE)
        return Precision(now.value, now.low, now.high, now.sampled, later.half_width)

    return Session(result, log, ask, judge, author=author, blind=blind)


def _last(answers: Sequence[Answer]) -> dict[Key, Answer]:
    """The last answer to each pair or entity."""
    return {(each.source, each.target): each for each in answers}


def _repeats(answer: Answer, before: Answer | None) -> bool:
    """Whether an answer says what was said before."""
    return before is not None and (answer.verdict, answer.author, answer.comment) == (
        *(before.verdict, before.author, before.comment),
    )


def _today() -> str:
    return date.today().isoformat()


def _advice(precision: Precision) -> str:
    """When to stop, in one or two sentences."""
    if precision.sampled < FEW:
        return (
            f"The precision is known roughly after {FEW} answers about random links; "
            f"{FEW - precision.sampled} more are needed."
        )
    now = (precision.high - precision.low) / 2
    later = min(precision.later_half_width, now)
    told = (
        f"{MORE} more answers about random links would narrow ±{percent(now)} to ±{percent(later)}."
    )
    if now - later < HARDLY:
        return f"{told} That is little: you can stop, and align again."
    return told
