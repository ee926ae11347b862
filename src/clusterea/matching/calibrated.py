"""`calibrated`: an alignment whose confidences are chances, without the links not worth giving."""

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
    """How sure links are, as a trial has shown it."""

    calibration: Calibration
    least: float  # links below it cost more precision than they bring recall
    examples: int  # links with a known verdict that it was fitted on


def fit_confidence(
    trial: Alignment, similarity: Similarity, task: AlignmentTask, pairs: Tensor
) -> FittedConfidence | None:
    """Fitted on an alignment in which entities of held-out pairs are matched like any others.

    None where fewer than `FEWEST` links touch one of these.

    Args:
        trial: Of all entities but those of the task's seeds.
        similarity: What it was made of.
        task: Its seeds are those that were learned from.
        pairs: (n, 2): those that nothing has learned from.
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
    """(links,): how likely each is right, as those show that touch a held-out pair.

    A link that touches one half of the held-out pairs is judged as the other half teaches, so that
    it is as sure as if nothing were known of it. The scores, where fewer than `FEWEST` touch one.

    Args:
        links: (n, 2): source entity, target entity; each entity once.
        scores: (n,): theirs.
        similarity: What they were taken from.
        task: Its seeds are those that were learned from.
        pairs: (n, 2): those that nothing has learned from.
    """
    known = held_out(links, pairs)
    if len(known.links) < FEWEST:
        return scores
    features = link_features(similarity, links, task)

    def taught(by: HeldOut) -> Tensor:
        return calibrate_held_out(features, by, task.num_undecided, EXPECTED).confidence(features)

    sure = taught(known)
    halves = [held_out(links, pairs[start::2]) for start in (0, 1)]
    for own, other in (halves, halves[::-1]):
        sure[own.links] = taught(other)[own.links]
    return sure


def calibrated(
    alignment: Alignment,
    similarity: Similarity,
    task: AlignmentTask,
    confidence: FittedConfidence,
    *,
    abstain: bool,
) -> Alignment:
    """The alignment with the chance that each link is right as its confidence.

    Args:
        alignment: Of all entities that no seed decides.
        similarity: What it was made of, or what was made before seeds rejoined.
        task: With all seeds.
        confidence: From `fit_confidence`.
        abstain: Whether links that are not worth giving are left out.
    """
    sure = confidence.calibration.confidence(link_features(similarity, alignment.links, task))
    order = sure.argsort(descending=True, stable=True)
    result = Alignment(
        alignment.links[order], sure[order], alignment.unmatched, confidence.examples
    )
    return result.at_least(confidence.least) if abstain else result


def without_pairs(alignment: Alignment, pairs: Tensor) -> Alignment:
    """The links that touch none of these pairs; the others' ends are neither here nor unmatched."""
    is_judged, _ = verdicts(alignment.links, pairs.to(alignment.links.device))
    kept = ~is_judged
    return Alignment(alignment.links[kept], alignment.confidence[kept], alignment.unmatched)


def merged(one: Alignment, other: Alignment) -> Alignment:
    """The links of both, the surest first; `other` says who is unmatched."""
    links = torch.cat([one.links, other.links])
    sure = torch.cat([one.confidence, other.confidence])
    order = sure.argsort(descending=True, stable=True)
    return Alignment(links[order], sure[order], other.unmatched)
