"""`estimated_precision`: the share of right links, estimated from a person's answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from clusterea.types import Answer, Decisions
from clusterea.types.judgments import Judgment, judgments

if TYPE_CHECKING:
    from clusterea.types import Alignment

NORMAL_95 = 1.96  # standard deviations that hold 95 % of a normal distribution
MORE_ANSWERS = 20  # random answers that the rule to stop looks ahead


@dataclass(frozen=True, slots=True)
class PrecisionEstimate:
    """The estimated share of right links."""

    value: float
    low: float  # the interval holds the true share with a probability of 95 %
    high: float
    sampled: int  # source entities with an answer of the random share
    known: int  # source entities that other answers judge
    links: int  # source entities with a link or an accepted pair

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


def estimated_precision(alignment: Alignment, answers: Sequence[Answer]) -> PrecisionEstimate:
    """The precision of the links, where an accepted pair is a link of its source entity.

    Links that answers judge are known. The rate of right links among all others is that of the
    random answers, each as it was first given: a person corrects what is found wrong in the sample,
    so after the next run the sample is better than the other links. For the same reason the
    estimate errs on the low side if a new run has improved the other links too.

    Chosen questions find more wrong links than random ones. If it is known that they were links of
    this alignment, the wrong ones found are subtracted from those that the sample predicts. The
    rest is cut off at 0, so the value is a little low, by up to 0.01 in simulations, if nearly all
    wrong links were found.

    The interval is Wilson's, for a sample from a finite population. Without random answers, the
    rate of the other links is their mean confidence, and the interval allows any rate.

    Answers that are unsure leave their link out. If an answer to a random question is not about
    the pair that was asked, such as one that accepts another target, then an answer `different` to
    that pair must come before it.
    """
    return _counts(alignment, answers).estimate()


def now_and_later(
    alignment: Alignment, answers: Sequence[Answer], more: int = MORE_ANSWERS
) -> tuple[PrecisionEstimate, PrecisionEstimate]:
    """`estimated_precision` now, and after more random answers at the same rate."""
    counts = _counts(alignment, answers)
    return counts.estimate(), counts.after(more).estimate()


@dataclass(frozen=True, slots=True)
class _Counts:
    """Numbers of source entities."""

    sampled: int  # with a random answer
    sampled_right: float  # of these, right as first answered
    known: int  # judged by other answers
    settled: int  # with a known state: judged, or sampled
    settled_right: float  # of these; a new link of a sampled entity counts with its confidence
    found: int  # links of this alignment that other answers judge
    found_right: int
    unknown: int
    confidence: float  # mean of the unknown

    def estimate(self) -> PrecisionEstimate:
        links = self.settled + self.unknown
        value, low, high = map(self.share, self._rates())
        return PrecisionEstimate(value, low, high, self.sampled, self.known, links)

    def share(self, rate: float) -> float:
        """The share of right links, if `rate` of the links that random questions ask are right."""
        links = self.settled + self.unknown
        right = rate * (self.unknown + self.found) - self.found_right
        right = min(max(right, 0.0), self.unknown)
        return (self.settled_right + right) / links if links else rate

    def after(self, more: int) -> _Counts:
        """After more random answers at the same rate."""
        more = min(more, self.unknown)
        rate, _, _ = self._rates()
        right = rate * more
        return replace(
            self,
            sampled=self.sampled + more,
            sampled_right=self.sampled_right + right,
            settled=self.settled + more,
            settled_right=self.settled_right + right,
            unknown=self.unknown - more,
        )

    def _rates(self) -> tuple[float, float, float]:
        """The rate of right links, and its interval."""
        if not self.sampled:
            found = self.unknown + self.found
            rate = (self.confidence * self.unknown + self.found_right) / found if found else 0.0
            return rate, 0.0, 1.0
        rate = self.sampled_right / self.sampled
        left = self.unknown + self.found
        # The sum of n unknown numbers differs from n times the rate, even if the rate were known.
        size = self.sampled * left / (left + self.sampled)
        return (rate, *wilson(rate, size))


def wilson(rate: float, size: float) -> tuple[float, float]:
    """Wilson's 95 % interval for a rate seen in a sample of this size; [0, 1] if it is 0."""
    spread = NORMAL_95**2
    center = (rate * size + spread / 2) / (size + spread)
    margin = NORMAL_95 * sqrt(size * rate * (1 - rate) + spread / 4) / (size + spread)
    # Rounding must not put the rate outside.
    return max(min(center - margin, rate), 0.0), min(max(center + margin, rate), 1.0)


def _counts(alignment: Alignment, answers: Sequence[Answer]) -> _Counts:
    links = alignment.links.cpu().numpy()
    accepted = Decisions.of(answers).accepted
    accepted = accepted[~np.isin(accepted[:, 0], links[:, 0])]
    pairs = np.concatenate([links, accepted])
    sure = np.concatenate([alignment.confidence.cpu().double().numpy(), np.ones(len(accepted))])
    is_link = np.arange(len(pairs)) < len(links)
    _, firsts = np.unique(pairs[:, 0], return_index=True)
    told = judgments(pairs, answers)
    firsts = firsts[told[firsts] != Judgment.UNSURE]
    pairs, sure, is_link, told = (each[firsts] for each in (pairs, sure, is_link, told))
    asked = np.array([each.source for each in answers if each.source is not None], np.int64)
    of_asked = links[np.isin(links[:, 0], asked)]  # few of them, and a dictionary of all is slow
    first = _first_verdicts(answers, dict(of_asked.tolist()))
    is_sampled = np.isin(pairs[:, 0], np.array([*first], dtype=np.int64))
    is_known = ~is_sampled & (told != Judgment.UNKNOWN)
    is_unknown = ~is_sampled & ~is_known
    is_right = told == Judgment.RIGHT
    is_pending = is_sampled & (told == Judgment.UNKNOWN)
    is_found = is_known & is_link
    return _Counts(
        sampled=len(first),
        sampled_right=sum(first.values()),
        known=int(is_known.sum()),
        settled=int((~is_unknown).sum()),
        settled_right=float((is_right & ~is_unknown).sum() + sure[is_pending].sum()),
        found=int(is_found.sum()),
        found_right=int((is_found & is_right).sum()),
        unknown=int(is_unknown.sum()),
        confidence=float(sure[is_unknown].mean()) if is_unknown.any() else 0.0,
    )


def _first_verdicts(answers: Sequence[Answer], link: dict[int, int]) -> dict[int, bool]:
    """Source entity → whether the pair that a random question first asked is right.

    Args:
        answers: In the order in which they were given.
        link: Source entity → target entity, of the links now.
    """
    first: dict[int, tuple[int | None, bool]] = {}
    for each in answers:
        source, target = each.source, each.target
        if source is None:
            continue
        asked, _ = first.get(source, (target, False))
        if asked != target:
            continue
        if each.verdict in ("unsure", "undone"):
            first.pop(source, None)
        elif each.is_random or source in first:
            # If the link has another target, the answer named a target that was not asked about.
            is_right = each.verdict == "same" and link.get(source, target) == target
            first[source] = target, is_right
    return {source: is_right for source, (_, is_right) in first.items()}
