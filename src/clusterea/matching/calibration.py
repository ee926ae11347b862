"""`calibrate`: the chance that a link is right, and from which chance on it is worth giving."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from clusterea.numerics.lookup import verdicts
from clusterea.types import IntArray, Pair

FEWEST = 20  # examples that a relation is fitted to; fewer tell how many are right, no more
RIDGE = 0.3  # weight of the squared coefficients; 3 would make the surest links underconfident
TRUST = 3.0  # ridge weight on the distance from the expected coefficients
STEPS = 100  # Newton's; it takes some 10
CLOSE = 1e-9  # a step that moves no coefficient further is the last
SHARPNESS = 12  # in `num_matchable` a link weighs its confidence to this power
LARGEST_SHIFT = 30.0  # of a logit: what is left of any chance is nothing
HALVINGS = 40  # of it: the last is far below what shows


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """A logistic relation between standardized features and being right."""

    means: Tensor  # (features,) float64, as are all
    scales: Tensor  # (features,): standard deviations; 1 where a feature is constant
    coefficients: Tensor  # (features,)
    intercept: Tensor  # ()

    def confidence(self, features: Tensor) -> Tensor:
        """(links,) float32 in [0, 1]: of the links that are given 0.9, nine in ten are right."""
        means, scales, coefficients, intercept = (
            each.to(features.device)
            for each in (self.means, self.scales, self.coefficients, self.intercept)
        )
        standard = (features.double() - means) / scales  # (links, features)
        return (standard @ coefficients + intercept).sigmoid().float()


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """The links that touch a held-out pair, and so are known to be right or wrong."""

    links: Tensor  # (n,) int64: their positions
    is_right: Tensor  # (n,) bool
    num_pairs: int  # held out, whether a link touches them or not

    @property
    def found(self) -> Tensor:
        """(right,) int64: the positions of those that are right."""
        return self.links[self.is_right]


def held_out(links: Tensor, pairs: IntArray | Tensor) -> HeldOut:
    """What `pairs`, which no encoder has learned, say about `links`.

    Args:
        links: (n, 2): source entity, target entity.
        pairs: (m, 2), one-to-one.
    """
    known = torch.asarray(pairs, dtype=torch.int64, device=links.device, copy=True).reshape(-1, 2)
    is_judged, is_right = verdicts(links, known)
    return HeldOut(is_judged.nonzero().flatten(), is_right[is_judged], len(known))


def calibrate(
    features: Tensor,
    is_right: Tensor,
    weights: Tensor | None = None,
    *,
    among: Tensor | None = None,
    expected: Sequence[float] | None = None,
) -> Calibration:
    """The relation that is likeliest for the examples: ridge logistic regression, by Newton.

    It is not fitted to a target of 1 for right and 0 for wrong but to (r + 1) / (r + 2) and
    1 / (w + 2), where r and w count the examples (Platt, 1999). So nothing is ever sure, and
    examples that are all right make every link as likely: (r + 1) / (r + 2). Fewer than `FEWEST`
    examples give all links one confidence, (r + 1) / (r + w + 2), and none at all 1/2. A constant
    feature has no part.

    Args:
        features: (examples, features), finite.
        is_right: (examples,) bool.
        weights: (examples,): how many links each stands for; 1 if not given.
        among: (links, features): those that features are standardized by; the examples if not
            given.
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
    ridge[-1] = 1e-6  # the least that keeps the equations solvable
    solution = _newton(standard, (weight * goal) @ standard, weight, center, ridge)
    return Calibration(means, scales, solution[:-1], solution[-1])


def calibrate_held_out(
    features: Tensor,
    known: HeldOut,
    undecided: Pair[int],
    expected: Sequence[float] | None = None,
) -> Calibration:
    """The relation for links of entities that have a counterpart, as the held-out pairs show it.

    A right link is among the examples if its one pair is held out. A wrong link between entities of
    two pairs has two chances, and would be there twice as often as it should: so a wrong example
    counts 1 - ρ / 2, where ρ is the chance that its other end has a counterpart too. How many
    entities have one is estimated by `num_matchable`, from a first relation with ρ = 1.

    Args:
        features: (links, features): of all links.
        known: From `held_out`.
        undecided: How many entities of each side no seed decides, the held-out ones included.
        expected: As for `calibrate`.
    """
    examples, right = features[known.links], known.is_right
    most = min(undecided)
    both = 1.0
    for _ in range(2):
        weights = torch.where(right, 1.0, 1.0 - both / 2)
        calibration = calibrate(examples, right, weights, among=features, expected=expected)
        confidence = calibration.confidence(features)
        matchable = num_matchable(confidence, known, most)
        both = sum(min(1.0, matchable / max(side, 1)) for side in undecided) / 2
    return calibration


def num_matchable(confidence: Tensor, known: HeldOut, most: int) -> float:
    """An estimate of how many undecided entities of a side have a counterpart.

    Of those that have one, the same share is found so sure as of the held-out pairs. All that are
    found so sure are about the sum of their confidences. The quotient is the estimate. Links
    between two entities without counterparts add to that sum, but few of these are very sure. So
    each link counts its confidence to the power of `SHARPNESS` (positive and unlabeled examples:
    Elkan and Noto, 2008). No single example decides, as it would at a threshold.

    Args:
        confidence: (links,): of all links.
        known: What the held-out pairs say about some of them.
        most: More cannot be: the undecided entities of the smaller side. Also where none is found.
    """
    sure = confidence.double().cpu()
    counts = sure**SHARPNESS
    found = float(counts[known.found.cpu()].sum())
    if not found:
        return float(most)
    return min(float(most), float(sure @ counts) / found * known.num_pairs)


def abstain_below(confidence: Tensor, known: HeldOut, most: int) -> float:
    """The confidence from which on links are given, for the highest F1 of all that are given.

    F1 = 2 C / (L + N): L links are given, C of them right, of N that exist. N is `num_matchable`.
    The confidence is that of links which touch an entity with a counterpart. The others are wrong,
    but no held-out pair tells. If they look like other wrong links, they make the odds of being
    right smaller by one factor, the same for all links: that with which as many links are right as
    there must be, N times the share of held-out pairs found. A link is worth giving if it is right
    with a chance of F1 / 2: where all have counterparts, and most are found, few are left out.

    0, which is every link, where no held-out pair is found.

    Args:
        confidence: (links,): of all links.
        known: What the held-out pairs say about some of them.
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
    """(links,): chances whose odds are smaller by one factor, and which sum to `total` at most."""
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
    # What is left of a constant after rounding is no scale.
    return means, torch.where(scales > 1e-6 * means.abs(), scales, 1.0)


def _newton(rows: Tensor, goal: Tensor, weight: Tensor, center: Tensor, ridge: Tensor) -> Tensor:
    """(columns,): what minimizes the cross entropy and the ridge.

    Args:
        rows: (examples, columns).
        goal: (columns,): what the rows, each as often as it is right, sum to.
        weight: (examples,).
        center: (columns,): where the ridge is zero.
        ridge: (columns,): its weights.
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
            step = step / 2  # far from the minimum a whole one may overshoot
        if float(step.abs().max()) < CLOSE:
            break
        solution = solution - step
        least = loss(solution)
    return solution
