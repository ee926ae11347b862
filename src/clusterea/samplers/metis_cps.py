"""METIS-CPS: METIS on both graphs, the second guided by the seeds (LargeEA). A baseline."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from clusterea.config import SamplingConfig
from clusterea.graph.metis import from_edges, metis
from clusterea.samplers.sampler import Resources
from clusterea.types import AlignmentTask, IntArray, KnowledgeGraph, Pair, Partition

HEAVY = 1000  # the weight of an edge between two seeds of one part, as in LargeEA


def metis_cps(
    task: AlignmentTask, embeddings: Pair[Tensor], config: SamplingConfig, resources: Resources
) -> Partition:
    """METIS's parts of the source graph, and parts of the target graph that follow its seeds.

    In the target graph, heavy edges join the seeds of one part, and edges between seeds of
    different parts are removed. METIS may still separate them, so its parts are then paired with
    the source's by the number of seeds they share.
    """
    del embeddings
    source = resources.cut(task.graphs.source, config.num_batches, config.seed)
    part_of_seed = source[task.seeds[:, 0]]
    target = _guided(task.graphs.target, task.seeds[:, 1], part_of_seed, config)
    shared = np.zeros((config.num_batches, config.num_batches), dtype=np.int64)
    np.add.at(shared, (part_of_seed, target[task.seeds[:, 1]]), 1)
    labels = Pair(source, _paired(shared)[target])
    return Partition(labels.map(lambda side: torch.from_numpy(side.copy())), config.num_batches)


def _guided(
    graph: KnowledgeGraph, seeds: IntArray, part_of_seed: IntArray, config: SamplingConfig
) -> IntArray:
    part = np.full(graph.num_entities, -1, dtype=np.int64)
    part[seeds] = part_of_seed
    # A star from the first seed of each part joins its seeds.
    parts, first = np.unique(part_of_seed, return_index=True)
    center = np.zeros(config.num_batches, dtype=np.int64)
    center[parts] = seeds[first]
    simple = from_edges(
        np.concatenate([graph.heads, center[part_of_seed]]),
        np.concatenate([graph.tails, seeds]),
        graph.num_entities,
    )
    ends = Pair(part[simple.owners()], part[simple.neighbors])
    both = (ends.source >= 0) & (ends.target >= 0)
    kept = ~both | (ends.source == ends.target)
    owners, neighbors = simple.owners()[kept], simple.neighbors[kept]
    weights = np.where(both[kept], HEAVY, 1)
    return metis(
        from_edges(owners, neighbors, graph.num_entities), config.num_batches, config.seed, weights
    )


def _paired(shared: IntArray) -> IntArray:
    """(parts,): the source part that each target part goes with, one to one, most shared first."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(shared, maximize=True)
    partner = np.empty(len(shared), dtype=np.int64)
    partner[columns] = rows
    return partner
