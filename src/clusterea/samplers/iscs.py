"""ISCS: METIS cuts one graph, and a GCN learns the parts in the other (section 4.3)."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.config import SamplingConfig
from clusterea.numerics.balance import balanced
from clusterea.samplers.gcn import classify_nodes
from clusterea.samplers.sampler import Resources
from clusterea.types import AlignmentTask, Pair, Partition


def iscs(
    task: AlignmentTask, embeddings: Pair[Tensor], config: SamplingConfig, resources: Resources
) -> Partition:
    """METIS's parts of the source graph, which a GCN trained on the seeds extends to the target.

    The source's parts are as even as METIS makes them. The target's are those that the GCN
    predicts, but none is larger than `config.largest_share` times the mean.
    """
    parts = torch.from_numpy(
        resources.cut(task.graphs.source, config.num_batches, config.seed).copy()
    )
    seeds = torch.from_numpy(task.seeds.copy())
    scores = classify_nodes(
        task.graphs.target,
        embeddings.target,
        seeds[:, 1],
        parts[seeds[:, 0]],
        config,
        resources.device,
    )
    return Partition(Pair(parts, balanced(scores, config.largest_share).cpu()), config.num_batches)
