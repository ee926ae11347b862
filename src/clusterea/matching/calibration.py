"""`calibrate`: the probability that a link is right, and the threshold to keep it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from clusterea.numerics.lookup import is_among, verdicts
from clusterea.types import NO_LINKS, IntArray, Pair

FEWEST = 20  # examples for a fit; with fewer, all links get the same confidence
RIDGE = 0.3  # weight of the squared coefficients; 3 would make the surest links underconfident
TRUST = 3.0  # ridge weight on the distance from the expected coefficients
STEPS = 100  # most steps of Newton's method; it needs about 10
CLOSE = 1e-9  # the last step is the one that moves every coefficient by less than this
SHARPNESS = 12  # the weight of a link in `num_matchable` is its confidence to this power
LARGEST_SHIFT = 30.0  # of a logit; makes any probability about 0
HALVINGS = 40  # steps of the bisection for the shift


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """A logistic regression on standardized features, for the probability that a link is right."""

    means: Tensor  # (features,) float64, as are all
    scales: Tensor  # (features,): standard deviations; 1 where a feature is constant
    coefficients: Tensor  # (features,)
    intercept: Tensor  # ()

    def confidence(self, features: Tensor) -> Tensor:
        """(links,) float32 in [0, 1]: the probability that each link is right."""
        means, scales, coefficients, intercept = (
            each.to(features.device)
            for each in (self.means, self.scales, self.coefficients, self.intercept)
        )
        standard = (features.double() - means) / scales  # (links, features)
        return (standard @ coefficients + intercept).sigmoid().float()


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """The links with an entity of a held-out pair. It is known whether they are right."""

    links: Tensor  # (n,) int64: their positions
    is_right: Tensor  # (n,) bool
    num_pairs: int  # all held-out pairs, with or without a link

    @classmethod
    def joined(cls, parts: Sequence[HeldOut], counts: Sequence[int]) -> HeldOut:
        """Those of several lists of links, one after the other.

        Args:
            parts: Of each list.
            counts: The number of links of each list.
        """
        starts = accumulate(counts, initial=0)
        links = [each.links + start for each, start in zip(parts, starts, strict=False)]
        return cls(
            torch.cat([torch.empty(0, dtype=torch.int64), *(each.cpu() for each in links)]),
            torch.cat([torch.empty(0, dtype=torch.bool), *(each.is_right.cpu() for each in parts)]),
            sum(each.num_pairs for each in parts),
        )

    @property
    def found(self) -> Tensor:
        """(right,) int64: the positions of the right links."""
        return self.links[self.is_right]


def held_out(
    links: Tensor, pairs: IntArray | Tensor, rejected: IntArray | Tensor = NO_LINKS
) -> HeldOut:
    """Which `links` are right or wrong, by pairs that no encoder was trained on.

    Args:
        links: (n, 2): source entity, target entity.
        pairs: (m, 2), one-to-one.
        rejected: (k, 2): pairs that are not the same.
    """
    known, wrong = (
        torch.asarray(each, dtype=torch.int64, device=links.device, copy=True).reshape(-1, 2)
        for each in (pairs, rejected)
    )
    is_judged, is_right = verdicts(links, known)
    is_judged |= is_among(links, wrong)
    return HeldOut(is_judged.nonzero().flatten(), is_right[is_judged], len(known))


def calibrate(
    features: Tensor,
    is_right: Tensor,
    weights: Tensor | None = None,
    *,
    among: Tensor | None = None,
    expected: Sequence[float] | None = None,
) -> Calibration:
    """Ridge logistic regression on the examples, fitted by Newton's method.

    The targets are not 1 for right and 0 for wrong but (r + 1) / (r + 2) and 1 / (w + 2), where r
    and w count the right and wrong examples (Platt, 1999). So no link gets a confidence of 0 or 1,
    and if all examples are right, every link gets (r + 1) / (r + 2). With fewer than `FEWEST`
    examples all links get (r + 1) / (r + w + 2). Constant features are ignored.

    Args:
        features: (examples, features), finite.
        is_right: (examples,) bool.
        weights: (examples,): the weight of each example; 1 if not given.
        among: (links, features): features are standardized by these; by the examples if not given.
        expected: Expected coefficients, in the features' own units; the fit is shrunk toward
            them. 0 if not given.
    """
    rows = features.detach().double().cpu()
    right = is_right.cpu()
    weight = torch.ones(len(rows)).double() if weights is None else weights.double().cpu()
    num_right, num_wrong = float(weight[right].sum()), float(weight[~right].sum())
    means, scales = _standard(rows if among is None else among.detach().double().cpu())
    if len(rows) < FEWEST:
        share = torch.tensor((num_right + 1) / (num_right + num_wrong + 2)).double()
        return Calibration(means, scales, torch.zeros_like(means), share.logit())
    goal = torch.where(right, (num_right + 1) / (num_right + 2), 1 / (num_wrong + 2)).double()
    ones = rows.new_ones(len(rows), 1)
    standard = torch.cat([(rows - means) / scales, ones], dim=1)
    center = torch.zeros_like(standard[0])
    if expected is not None:
        center[:-1] = torch.tensor(expected).double() * scales
    ridge = torch.full_like(center, RIDGE if expected is None else TRUST)
    ridge[-1] = 1e-6  # keeps the equations solvable
    solution = _newton(standard, (weight * goal) @ standard, weight, center, ridge)
    return Calibration(means, scales, solution[:-1], solution[-1])


def calibrate_held_out(
    features: Tensor,
    known: HeldOut,
    undecided: Pair[int],
    expected: Sequence[float] | None = None,
) -> Calibration:
    """The calibration for links of entities that have a counterpart, from held-out pairs.

    A right link is an example if its pair is held out. A wrong link between entities of two pairs
    is an example if either pair is held out, so there are twice as many as there should be. For
    this reason a wrong example has weight 1 - ρ / 2, where ρ is the probability that its other
    entity has a counterpart too. ρ follows from `num_matchable` after a first fit with ρ = 1.

    Args:
        features: (links, features): of all links.
        known: From `held_out`.
        undecided: The number of undecided entities of each side, held-out ones included.
        expected: As for `calibrate`.
    """
    examples, right = features[known.links], known.is_right
    among = features.detach().double().cpu()  # copied from a GPU once
    most = min(undecided)
    both = 1.0
    for _ in range(2):
        weights = torch.where(right, 1.0, 1.0 - both / 2)
        calibration = calibrate(examples, right, weights, among=among, expected=expected)
        confidence = calibration.confidence(features)
        matchable = num_matchable(confidence, known, most)
        both = sum(min(1.0, matchable / max(side, 1)) for side in undecided) / 2
    return calibration


def num_matchable(confidence: Tensor, known: HeldOut, most: int) -> float:
    """An estimate of how many undecided entities of a side have a counterpart.

    The estimate is the number of confident right links over the share of held-out pairs that are
    found with confidence (learning from positive and unlabeled examples: Elkan and Noto, 2008). A
    link is weighted by its confidence to the power of `SHARPNESS`: wrong links between entities
    without counterparts seldom have a high confidence. Unlike a threshold, this gives no single
    example a large effect.

    Args:
        confidence: (links,): of all links.
        known: From `held_out`.
        most: The undecided entities of the smaller side: an upper bound. Also the result if no
            held-out pair is found.
    """
    sure = confidence.double().cpu()
    counts = sure**SHARPNESS
    found = float(counts[known.found.cpu()].sum())
    if not found:
        return float(most)
    return min(float(most), float(sure @ counts) / found * known.num_pairs)


def abstain_below(confidence: Tensor, known: HeldOut, most: int) -> float:
    """The confidence threshold with the highest expected F1.

    F1 = 2 C / (L + N): L links are given, C of them right, of N that exist. N is `num_matchable`.
    The confidence holds for links that have an entity with a counterpart. All other links are
    wrong, but no held-out pair shows it. Assume that they look like other wrong links: then the
    odds of all links shrink by one factor. It is chosen so that the expected number of right links
    is N times the share of held-out pairs found. A link raises F1 if its probability is above
    F1 / 2, so few are left out where most entities have counterparts and are found.

    0, which keeps every link, if no held-out pair is found.

    Args:
        confidence: (links,): of all links.
        known: From `held_out`.
        most: The undecided entities of the smaller side.
    """
    if not len(known.found):
        return 0.0
    matchable = num_matchable(confidence, known, most)
    falling = confidence.sort(descending=True).values.double().cpu()
    chances = _lowered(falling, matchable * len(known.found) / known.num_pairs)
    given = torch.arange(1, len(falling) + 1)
    scores = 2 * chances.cumsum(0) / (given + matchable)
    best = int(scores.argmax())
    return float(falling[best]) if best < len(falling) - 1 else 0.0


def _lowered(confidence: Tensor, total: float) -> Tensor:
    """(links,): probabilities with all odds shrunk by one factor, so that they sum to `total`."""
    logits = confidence.logit(eps=1e-6)
    low, high = -LARGEST_SHIFT, 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if float((logits + middle).sigmoid().sum()) > total:
            high = middle
        else:
            low = middle
    return (logits + high).sigmoid()


def _standard(rows: Tensor) -> tuple[Tensor, Tensor]:
    """(features,) each: means, and standard deviations."""
    if not len(rows):
        return rows.new_zeros(rows.shape[1]), rows.new_ones(rows.shape[1])
    means, scales = rows.mean(0), rows.std(0, correction=0)
    # The deviation of a constant is only rounding error.
    return means, torch.where(scales > 1e-6 * means.abs(), scales, 1.0)


def _newton(rows: Tensor, goal: Tensor, weight: Tensor, center: Tensor, ridge: Tensor) -> Tensor:
    """(columns,): the coefficients that minimize cross entropy plus ridge.

    Args:
        rows: (examples, columns).
        goal: (columns,): the sum of the rows, each times its weight and target.
        weight: (examples,).
        center: (columns,): the coefficients that the ridge pulls toward.
        ridge: (columns,): the weights of the ridge.
    """

    def loss(at: Tensor) -> float:
        entropy = weight @ torch.nn.functional.softplus(rows @ at) - goal @ at
        return float(entropy + (ridge * (at - center) ** 2).sum() / 2)

    solution, least = center, loss(center)
    for _ in range(STEPS):
        chance = (rows @ solution).sigmoid()
        slope = rows.T @ (weight * chance) - goal + ridge * (solution - center)
        curve = (rows.T * (weight * chance * (1 - chance))) @ rows + ridge.diag()
        step = torch.linalg.solve(curve, slope)
        while loss(solution - step) > least and float(step.abs().max()) >= CLOSE:
            step = step / 2  # far from the minimum, a whole step may be too far
        if float(step.abs().max()) < CLOSE:
            break
        solution = solution - step
        least = loss(solution)
    return solution
