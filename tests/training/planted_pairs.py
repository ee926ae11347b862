"""Pairs that the encoders are tried on, and how good embeddings of them are."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from clusterea.data.synthetic import PairShape, generate
from clusterea.types import AlignmentTask, IntArray, Pair
from small_graphs import random_pair


def planted_pair() -> tuple[AlignmentTask, IntArray]:
    """Two views of one world of 300 entities, 30 % of it as seeds, and the other links."""
    shape = PairShape(Pair(300, 300), Pair(1800, 1800), Pair(20, 20), 1.0, Pair(0.97, 0.97))
    benchmark = generate(shape, seed=0)
    links = np.array(benchmark.task.seeds)
    return AlignmentTask(benchmark.task.graphs, links[:90]), links[90:]


def unrelated_pair() -> AlignmentTask:
    """Two unrelated graphs of 30 entities, 12 of them seeds: for what needs no sense."""
    ids = np.random.default_rng(0).permutation(30)[:12]
    return AlignmentTask(random_pair(5), np.stack([ids, ids[::-1]], 1))


def hits_at_1(embeddings: Pair[Tensor], links: IntArray) -> float:
    """The share of links whose target is the nearest of all linked targets."""
    source, target = (
        side[torch.from_numpy(ids.copy())].float()
        for side, ids in zip(embeddings, links.T, strict=True)
    )
    best = (source @ target.T).argmax(1)
    return float((best == torch.arange(len(links))).double().mean())
