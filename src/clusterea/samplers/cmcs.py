"""CMCS: mini-batches from clusters of the seed pairs' embeddings (section 4.3)."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.config import SamplingConfig
from clusterea.numerics.balance import balanced
from clusterea.numerics.kmeans import kmeans
from clusterea.samplers.classifiers import find_classifier
from clusterea.samplers.sampler import Place
from clusterea.seeding import derived_seed, generator
from clusterea.types import AlignmentTask, Pair, Partition


def cmcs(
    task: AlignmentTask, embeddings: Pair[Tensor], config: SamplingConfig, place: Place
) -> Partition:
    """Clusters of the seed pairs, which a classifier extends to all entities of both graphs.

    Both sides' embeddings live in one space, so one classifier learns from both ends of the seeds
    and draws the same borders in both graphs. One for each graph, as in the paper, keeps about half
    a point fewer links together.
    """
    classify = find_classifier(config.classifier)
    seeds = torch.from_numpy(task.seeds.copy())
    known = Pair(
        embeddings.source[seeds[:, 0]].to(place.device),
        embeddings.target[seeds[:, 1]].to(place.device),
    )
    clusters = kmeans(
        torch.cat([standardized(side) for side in known], dim=1),
        config.num_batches,
        generator(config.seed, "kmeans"),
        rounds=config.kmeans_rounds,
        tolerance=config.kmeans_tolerance,
        starts=config.kmeans_starts,
        largest_share=max(1.0, 0.9 * config.largest_share),  # room for what the classifier adds
    )
    label = classify(
        torch.cat(list(known)),
        clusters.repeat(2),
        config.num_batches,
        derived_seed(config.seed, "classifier"),
        place.device,
    )
    labels = embeddings.map(lambda rows: balanced(label(rows), config.largest_share).cpu())
    return Partition(labels, config.num_batches)


def standardized(rows: Tensor) -> Tensor:
    """(n, dim): each column with mean 0 and deviation 1: no dimension rules the clusters."""
    centered = rows - rows.mean(0)
    return centered / centered.square().mean(0).sqrt().clamp(min=1e-12)
