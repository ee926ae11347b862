"""Pairs of graphs with known communities, and quick settings for the samplers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from clusterea.config import SamplingConfig
from clusterea.types import AlignmentTask, Benchmark, IntArray, KnowledgeGraph, Names, Pair
from small_graphs import random_pair

CPU = torch.device("cpu")


def settings(**changes: Any) -> SamplingConfig:
    """Settings that are quick, and no default among them."""
    quick: dict[str, Any] = {
        "num_batches": 4,
        "max_batch": None,
        "largest_share": 2.0,
        "classifier": "softmax",
        "kmeans_starts": 2,
        "gcn_epochs": 20,
        "seed": 0,
    }
    return SamplingConfig(**(quick | changes))


def named(task: AlignmentTask, test_links: IntArray) -> Benchmark:
    """A benchmark of these links, with numbers for names."""
    return Benchmark(
        task,
        test_links,
        task.graphs.map(lambda graph: Names([f"e{i}" for i in range(graph.num_entities)])),
        task.graphs.map(lambda graph: Names([f"r{i}" for i in range(graph.num_relations)])),
    )


def planted(
    seed: int = 0, *, communities: int = 4, members: int = 40
) -> tuple[Benchmark, Pair[Tensor], Pair[IntArray]]:
    """The same communities in two graphs: a benchmark, noisy embeddings, and the communities.

    One triple in twenty leads out of its community. The two sides' ids have nothing in common;
    three in ten links are seeds.
    """
    rng = np.random.default_rng(seed)
    count = communities * members
    numbers = Pair(rng.permutation(count), rng.permutation(count))  # of each member, on each side

    def graph(ids: IntArray) -> KnowledgeGraph:
        heads = np.repeat(np.arange(count), 6)
        tails = heads // members * members + rng.integers(0, members, len(heads))
        stray = rng.random(len(heads)) < 0.05
        tails[stray] = rng.integers(0, count, int(stray.sum()))
        relations = rng.integers(0, 3, len(heads))
        triples = np.unique(np.stack([ids[heads], relations, ids[tails]], 1), axis=0)
        return KnowledgeGraph(triples, count, 3)

    def community(ids: IntArray) -> IntArray:
        labels = np.empty(count, dtype=np.int64)
        labels[ids] = np.arange(count) // members
        return labels

    truth = numbers.map(community)
    vectors = rng.normal(size=(communities, 16))
    embeddings = truth.map(
        lambda labels: torch.from_numpy(
            vectors[labels] + 0.4 * rng.normal(size=(count, 16))
        ).float()
    )
    links = np.stack(list(numbers), 1)[rng.permutation(count)]
    known = count * 3 // 10
    task = AlignmentTask(numbers.map(graph), links[:known])
    return named(task, links[known:]), embeddings, truth


def unrelated(seed: int = 0, *, entities: int = 60) -> tuple[AlignmentTask, Pair[Tensor]]:
    """Two graphs and embeddings without sense, a third of the entities as seeds."""
    draw = torch.Generator().manual_seed(seed)
    graphs = random_pair(seed, entities=entities, triples=3 * entities)
    seeds = np.random.default_rng(seed).permutation(entities)[: entities // 3]
    embeddings = graphs.map(lambda graph: torch.randn(graph.num_entities, 6, generator=draw))
    return AlignmentTask(graphs, np.stack([seeds, seeds[::-1]], 1)), embeddings
