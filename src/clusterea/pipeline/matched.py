"""`matched`: from the similarities of all fits to the alignment, with its confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from clusterea.config import Config
from clusterea.engines import Engine
from clusterea.pipeline.learning import Fit, Fitted
from clusterea.pipeline.link_gains import LinkGains
from clusterea.types import NO_LINKS, Alignment, AlignmentTask, IntArray, Pair, Similarity

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from clusterea.graph.labeled_edges import LabeledEdges


def matched(
    task: AlignmentTask,
    every_fit: Sequence[Fit],
    fitted: Sequence[Fitted],
    similarity: Similarity,
    config: Config,
    device: torch.device,
    engine: Engine | None = None,
) -> Alignment:
    """The links of a similarity, on the host.

    The confidence is fitted on trials: alignments of the similarity of each fit, in which its
    held-out seeds are matched like other entities. They show how often links are right.

    Args:
        task: The task with all seeds.
        every_fit: The fits.
        fitted: The results of each, without the seeds it learned from.
        similarity: Their mean.
        config: The settings.
        device: Where to compute.
        engine: Runs the units; in this process if not given.
    """
    from clusterea.matching import (
        Trial,
        calibrated,
        edges_of,
        fit_confidence,
        has_matched_neighbors,
        supported,
    )
    from clusterea.sharded import HeldScores, match

    keys, how = tie_keys_on(task, device), config.matching
    sent: dict[tuple[int, bool], HeldScores] = {}

    def held(scores: Similarity, rejected: IntArray = NO_LINKS) -> HeldScores:
        """What the engine holds of a similarity, which is sent to it once."""
        key = id(scores), len(rejected) > 0
        if key not in sent:
            sent[key] = HeldScores.of(scores.to(device), engine, rejected)
        return sent[key]

    def links(scores: HeldScores, seeds: IntArray) -> Alignment:
        return match(
            scores, keys, seeds, method=how.method, seed=how.seed, structural=task.structural
        )

    @cache
    def edges() -> Pair[LabeledEdges]:
        return edges_of(task, device)

    # A fit may link the rejected pairs that it held out; the result may not.
    own = [held(each.similarity.value, task.rejected) for each in fitted]
    found = links(held(similarity), task.seeds)
    trials = []
    for fit, each in zip(every_fit, fitted, strict=True):
        if len(fit.held):
            scores = held(each.trial.value)
            trial_gains = LinkGains.by(each.trust, each.contents, fit.hidden)
            known = fit.known.value
            trials.append(
                Trial(
                    links(scores, known.seeds),
                    scores,
                    known,
                    as_tensor(fit.held),
                    None if trial_gains is None else trial_gains.total,
                    fit.held_rejected,
                )
            )
    confidence = fit_confidence(trials, edges() if trials else None)
    of_links = [LinkGains.by(each.trust, each.contents) for each in fitted]
    if confidence is not None:
        totals = [None if each is None else each.total for each in of_links]
        found = calibrated(
            found, own, task, confidence, abstain=how.abstain, gains=totals, edges=edges()
        )
    elif how.held_out and how.abstain:
        found = supported(found, task.with_seeds(task.all_seeds), edges())
    if of_links[0] is not None:
        neighbors = has_matched_neighbors(found.links, task, edges())
        grounds = of_links[0].grounds(found.links.cpu(), neighbors)
        found = replace(found, grounds=grounds.to(device))
    return found.to("cpu")


def as_tensor(pairs: IntArray) -> Tensor:
    """A copy of the array."""
    from torch import from_numpy

    return from_numpy(pairs.copy())


def tie_keys_on(task: AlignmentTask, device: torch.device) -> Pair[Tensor]:
    """The tie keys of both sides, on the device."""
    return task.tie_keys.map(lambda side: as_tensor(side).to(device))
