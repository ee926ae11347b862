"""`calibrated`: an alignment with probabilities as confidence, without links that lower F1."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clusterea.matching.calibration import (
    FEWEST,
    Calibration,
    HeldOut,
    abstain_below,
    calibrate_held_out,
    held_out,
)
from clusterea.matching.features import FEATURES, link_features
from clusterea.numerics.lookup import verdicts
from clusterea.types import Alignment, AlignmentTask, Similarity

EXPECTED = tuple(FEATURES.values())  # the coefficients of the features


@dataclass(frozen=True, slots=True, eq=False)
class FittedConfidence:
    """How confidence is computed, fitted on a trial alignment."""

    calibration: Calibration
    least: float  # confidence threshold: links below it lower the expected F1
    examples: int  # links with a known verdict that it was fitted on


def fit_confidence(
    trial: Alignment, similarity: Similarity, task: AlignmentTask, pairs: Tensor
) -> FittedConfidence | None:
    """The confidence fitted on a trial alignment, in which held-out pairs are matched too.

    None if fewer than `FEWEST` links have an entity of a held-out pair.

    Args:
        trial: The alignment of all entities but those of the task's seeds.
        similarity: What it was computed from.
        task: Its seeds are those that training used.
        pairs: (n, 2): the held-out pairs, which nothing was trained on.
    """
    known = held_out(trial.links, pairs)
    if len(known.links) < FEWEST:
        return None
    features = link_features(similarity, trial.links, task)
    calibration = calibrate_held_out(features, known, task.num_undecided, EXPECTED)
    tried = calibration.confidence(features)
    least = abstain_below(tried, known, min(task.num_undecided))
    return FittedConfidence(calibration, least, len(known.links))


def chances(
    links: Tensor, scores: Tensor, similarity: Similarity, task: AlignmentTask, pairs: Tensor
) -> Tensor:
    """(links,): the probability that each is right, fitted on held-out pairs.

    A link with an entity of one half of the held-out pairs is scored by the fit on the other half,
    so no link is scored by a fit on itself. With fewer than `FEWEST` such links, returns `scores`.

    Args:
        links: (n, 2): source entity, target entity; each entity once.
        scores: (n,): the similarity of each link.
        similarity: What the links were taken from.
        task: Its seeds are those that training used.
        pairs: (n, 2): the held-out pairs, which nothing was trained on.
    """
    known = held_out(links, pairs)
    if len(known.links) < FEWEST:
        return scores
    features = link_features(similarity, links, task)

    def fitted(by: HeldOut) -> Tensor:
        return calibrate_held_out(features, by, task.num_undecided, EXPECTED).confidence(features)

    sure = fitted(known)
    halves = [held_out(links, pairs[start::2]) for start in (0, 1)]
    for own, other in (halves, halves[::-1]):
        sure[own.links] = fitted(other)[own.links]
    return sure


def calibrated(
    alignment: Alignment,
    similarity: Similarity,
    task: AlignmentTask,
    confidence: FittedConfidence,
    *,
    abstain: bool,
) -> Alignment:
    """The alignment with the probability that each link is right as its confidence.

    Args:
        alignment: The alignment of all undecided entities.
        similarity: What it was computed from.
        task: With all seeds.
        confidence: From `fit_confidence`.
        abstain: Whether links that lower the expected F1 are left out.
    """
    sure = confidence.calibration.confidence(link_features(similarity, alignment.links, task))
    order = sure.argsort(descending=True, stable=True)
    result = Alignment(
        alignment.links[order], sure[order], alignment.unmatched, confidence.examples
    )
    return result.at_least(confidence.least) if abstain else result


def without_pairs(alignment: Alignment, pairs: Tensor) -> Alignment:
    """The alignment without links of entities of these pairs. `unmatched` stays as it is."""
    is_judged, _ = verdicts(alignment.links, pairs.to(alignment.links.device))
    kept = ~is_judged
    return Alignment(alignment.links[kept], alignment.confidence[kept], alignment.unmatched)


def merged(one: Alignment, other: Alignment) -> Alignment:
    """The links of both, the most confident first, with the `unmatched` of the second."""
    links = torch.cat([one.links, other.links])
    sure = torch.cat([one.confidence, other.confidence])
    order = sure.argsort(descending=True, stable=True)
    return Alignment(links[order], sure[order], other.unmatched)
