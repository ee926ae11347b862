"""`calibrated`: an alignment with probabilities as confidence, without links that lower F1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from clusterea.graph.labeled_edges import LabeledEdges, edges_to_partners
from clusterea.matching.calibration import (
    FEWEST,
    Calibration,
    HeldOut,
    abstain_below,
    calibrate_held_out,
    held_out,
)
from clusterea.matching.compared import Scores
from clusterea.matching.features import FEATURES, Gains, edges_of, link_features, partners
from clusterea.types import NO_LINKS, Alignment, AlignmentTask, IntArray, Pair

EXPECTED = tuple(FEATURES.values())  # the coefficients of the features


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """An alignment in which held-out pairs are matched like other entities."""

    alignment: Alignment  # of all entities but those of the task's seeds
    similarity: Scores  # what it was computed from
    task: AlignmentTask  # its seeds are those that training used
    pairs: Tensor  # (n, 2): the held-out pairs, which nothing was trained on
    gains: Gains | None = None  # of links by names and features
    rejected: IntArray = field(default_factory=NO_LINKS.copy)  # (n, 2): held-out rejected pairs


@dataclass(frozen=True, slots=True, eq=False)
class FittedConfidence:
    """How confidence is computed, fitted on trials."""

    calibration: Calibration
    least: float  # confidence threshold: links below it lower the expected F1
    examples: int  # links with a known verdict that it was fitted on


def fit_confidence(
    trials: Sequence[Trial], edges: Pair[LabeledEdges] | None = None
) -> FittedConfidence | None:
    """The confidence fitted on all trials together.

    None if it is known of fewer than `FEWEST` links whether they are right. `edges` are those of
    `edges_of`, if they are there.
    """
    judged = [held_out(each.alignment.links, each.pairs, each.rejected) for each in trials]
    known = HeldOut.joined(judged, [len(each.alignment.links) for each in trials])
    if len(known.links) < FEWEST:
        return None
    features = torch.cat(
        [
            link_features(each.similarity, each.alignment.links, each.task, each.gains, edges)
            for each in trials
        ]
    )
    undecided = Pair(
        *(sum(sides) for sides in zip(*(t.task.num_undecided for t in trials), strict=True))
    )
    calibration = calibrate_held_out(features, known, undecided, EXPECTED)
    tried = calibration.confidence(features)
    return FittedConfidence(
        calibration, abstain_below(tried, known, min(undecided)), len(known.links)
    )


def chances(
    links: Tensor,
    scores: Tensor,
    similarity: Scores,
    task: AlignmentTask,
    pairs: Tensor,
    gains: Gains | None = None,
    rejected: IntArray = NO_LINKS,
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
        gains: Of links by names and features.
        rejected: (n, 2): held-out pairs that are not the same.
    """
    known = held_out(links, pairs, rejected)
    if len(known.links) < FEWEST:
        return scores
    features = link_features(similarity, links, task, gains)

    def fitted(by: HeldOut) -> Tensor:
        return calibrate_held_out(features, by, task.num_undecided, EXPECTED).confidence(features)

    sure = fitted(known)
    halves = [held_out(links, pairs[start::2], rejected[start::2]) for start in (0, 1)]
    for own, other in (halves, halves[::-1]):
        sure[own.links] = fitted(other)[own.links]
    return sure


def calibrated(
    alignment: Alignment,
    similarities: Sequence[Scores],
    task: AlignmentTask,
    confidence: FittedConfidence,
    *,
    abstain: bool,
    gains: Sequence[Gains | None] | None = None,
    edges: Pair[LabeledEdges] | None = None,
) -> Alignment:
    """The alignment with the probability that each link is right as its confidence.

    Args:
        alignment: The alignment of all undecided entities.
        similarities: Those of all fits. Each gives a probability; the highest counts. Their mean
            would be too low: what one fit finds hard, the other one often has seeds near to.
        task: With all seeds.
        confidence: From `fit_confidence`.
        abstain: Whether links that lower the expected F1 are left out.
        gains: Of links by names and features, for each similarity.
        edges: From `edges_of`, if they are there.
    """
    links, fitted = alignment.links, confidence.calibration
    own = zip(similarities, gains or [None] * len(similarities), strict=True)
    each = [
        fitted.confidence(link_features(scores, links, task, gain, edges)) for scores, gain in own
    ]
    sure = torch.stack(each).amax(0)
    order = sure.argsort(descending=True, stable=True)
    result = Alignment(links[order], sure[order], alignment.unmatched, confidence.examples)
    return result.at_least(confidence.least) if abstain else result


def supported(
    alignment: Alignment, task: AlignmentTask, edges: Pair[LabeledEdges] | None = None
) -> Alignment:
    """The links that a seed supports: a neighbor of the one entity and a neighbor of the other.

    Where seeds are too few to fit a confidence, all other links are guesses upon guesses.

    Args:
        alignment: The alignment of all undecided entities.
        task: With all seeds.
        edges: From `edges_of`, if they are there.
    """
    links = alignment.links
    edges = edges or edges_of(task, links.device)
    partner = partners(links[:0], task.seeds, task.num_entities.source)
    at, _, _ = edges_to_partners(Pair(links[:, 0], links[:, 1]), edges, partner)
    return alignment.only(at.bincount(minlength=len(links)) > 0)
