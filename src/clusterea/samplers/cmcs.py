"""CMCS: mini-batches from clusters of the seed pairs' embeddings (section 4.3)."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.config import SamplingConfig
from clusterea.numerics.balance import balanced
from clusterea.numerics.kmeans import kmeans
from clusterea.samplers.classifiers import find_classifier
from clusterea.samplers.sampler import Resources
from clusterea.seeding import derived_seed, generator
from clusterea.types import AlignmentTask, Pair, Partition

# scikit-learn's defaults
KMEANS_ROUNDS = 300
KMEANS_TOLERANCE = 1e-4


def cmcs(
    task: AlignmentTask, embeddings: Pair[Tensor], config: SamplingConfig, resources: Resources
) -> Partition:
    """Clusters of the seed pairs, which a classifier extends to all entities of both graphs.

    Both sides' embeddings are in one space, so one classifier is trained on both ends of the seeds.
    One for each graph, as in the paper, keeps about half a point fewer links together.
    """
    classify = find_classifier(config.classifier)
    seeds = torch.from_numpy(task.seeds.copy())
    known = Pair(
        embeddings.source[seeds[:, 0]].to(resources.device).float(),
        embeddings.target[seeds[:, 1]].to(resources.device).float(),
    )
    clusters = kmeans(
        torch.cat([standardized(side) for side in known], dim=1),
        config.num_batches,
        generator(config.seed, "kmeans"),
        rounds=KMEANS_ROUNDS,
        tolerance=KMEANS_TOLERANCE,
        starts=config.kmeans_starts,
        largest_share=max(1.0, 0.9 * config.largest_share),  # leaves room for the classifier
    )
    label = classify(
        torch.cat(list(known)),
        clusters.repeat(2),
        config.num_batches,
        derived_seed(config.seed, "classifier"),
        resources.device,
    )
    labels = embeddings.map(lambda rows: balanced(label(rows), config.largest_share).cpu())
    return Partition(labels, config.num_batches)


def standardized(rows: Tensor) -> Tensor:
    """(n, dim): each column with mean 0 and deviation 1, so that all dimensions count alike."""
    centered = rows - rows.mean(0)
    return centered / centered.square().mean(0).sqrt().clamp(min=1e-12)
