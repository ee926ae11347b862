"""`calibrated`: an alignment whose confidences are chances, without the links not worth giving."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from clusterea.matching.calibration import (
    FEWEST,
    abstain_below,
    calibrate_held_out,
    held_out,
    touches,
)
from clusterea.matching.features import link_features
from clusterea.types import Alignment, AlignmentTask, Similarity


def calibrated(
    alignment: Alignment,
    trial: Alignment,
    similarity: Similarity,
    task: AlignmentTask,
    pairs: Tensor,
    *,
    abstain: bool,
) -> Alignment:
    """The alignment with the chance that each link is right as its confidence.

    The chance is fitted on a trial: an alignment in which entities of pairs that nothing has
    learned from are matched like any others. Where fewer than `FEWEST` links touch one of these,
    the alignment stays as it is.

    Args:
        alignment: Of all entities that no seed decides.
        trial: Of these and of the held-out ones.
        similarity: What both were made of.
        task: Its seeds are those that were learned from.
        pairs: (n, 2): those that were held out.
        abstain: Whether links are left out that cost more precision than they bring recall.
    """
    known = held_out(trial.links, pairs)
    if len(known.links) < FEWEST:
        return alignment
    features = link_features(similarity, trial.links, task)
    undecided = task.graphs.map(lambda graph: graph.num_entities - task.num_seeds)
    calibration = calibrate_held_out(features, known, undecided)
    # The held-out pairs were partners in the trial, and are seeds now.
    whole = task.with_seeds(np.concatenate([task.seeds, pairs.cpu().numpy()]))
    sure = calibration.confidence(link_features(similarity, alignment.links, whole))
    order = sure.argsort(descending=True, stable=True)
    result = Alignment(alignment.links[order], sure[order], alignment.unmatched)
    if not abstain:
        return result
    tried = calibration.confidence(features)
    return result.at_least(abstain_below(tried, known, min(undecided)))


def without_pairs(alignment: Alignment, pairs: Tensor) -> Alignment:
    """The links that touch none of these pairs; the others' ends are neither here nor unmatched."""
    kept = ~touches(alignment.links, pairs.to(alignment.links.device))
    return Alignment(alignment.links[kept], alignment.confidence[kept], alignment.unmatched)


def merged(one: Alignment, other: Alignment) -> Alignment:
    """The links of both, the surest first; `other` says who is unmatched."""
    links = torch.cat([one.links, other.links])
    sure = torch.cat([one.confidence, other.confidence])
    order = sure.argsort(descending=True, stable=True)
    return Alignment(links[order], sure[order], other.unmatched)
