"""The seeds and negatives of each step of an epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from clusterea.config import TrainingConfig
from clusterea.seeding import derived_seed
from clusterea.types import AlignmentTask, IntArray, Pair

MOST_REJECTED = 500  # rejected pairs in a step


@dataclass(frozen=True, slots=True)
class Step:
    """Nodes of the union graph, and the positions of the seeds' two ends in `nodes`."""

    nodes: Tensor | None  # (n,); None: every node
    source: Tensor  # (seeds,)
    target: Tensor  # (seeds,)
    source_negatives: Tensor | None = None  # (seeds · k,), of the margin loss
    target_negatives: Tensor | None = None
    rejected: Tensor | None = None  # (n, 2): positions of the two ends of rejected pairs


class Schedule:
    """The steps of each epoch. They depend on the random seed and the epoch alone.

    The seed pairs are shuffled and cut into steps. Each step draws new negatives of each side from
    the entities that are in no seed pair, or takes all of them if there are too few. Each step
    also has up to `MOST_REJECTED` of the rejected pairs.
    """

    def __init__(self, task: AlignmentTask, config: TrainingConfig) -> None:
        self._task, self._config = task, config
        self._offset = task.graphs.source.num_entities
        self._size = config.seeds_per_step or task.num_seeds
        self._undecided = Pair(
            _undecided(task.graphs.source.num_entities, task.seeds[:, 0]),
            _undecided(task.graphs.target.num_entities, task.seeds[:, 1]) + self._offset,
        )

    @property
    def steps_in_epoch(self) -> int:
        """How many steps use all seeds once."""
        return -(-self._task.num_seeds // self._size)

    def steps(self, epoch: int) -> Iterator[Step]:
        """The steps of one epoch."""
        if not len(self._task.rejected):
            yield from self._steps(epoch)
            return
        rng = np.random.default_rng(derived_seed(self._config.seed, "rejected", epoch))
        every = self._task.rejected + np.array([0, self._offset])
        for step in self._steps(epoch):
            some = every[rng.permutation(len(every))[:MOST_REJECTED]]
            yield _with_rejected(step, torch.from_numpy(some))

    def _steps(self, epoch: int) -> Iterator[Step]:
        config = self._config
        rng = np.random.default_rng(derived_seed(config.seed, "steps", epoch))
        margin_rng = np.random.default_rng(derived_seed(config.seed, "negatives", epoch))
        order = rng.permutation(self._task.num_seeds)
        seeds = self._task.seeds[order] + np.array([0, self._offset])
        for start in range(0, len(seeds), self._size):
            part = seeds[start : start + self._size]
            if config.loss == "margin":
                yield self._margin_step(part, margin_rng)
                continue
            source, target = (torch.from_numpy(np.ascontiguousarray(ids)) for ids in part.T)
            if config.negatives_per_step is None:
                yield Step(None, source, target)
                continue
            negatives = [_draw(pool, config.negatives_per_step, rng) for pool in self._undecided]
            positions = torch.arange(2 * len(source))
            yield Step(torch.cat([source, target, *negatives]), *positions.chunk(2))

    def _margin_step(self, seeds: IntArray, rng: np.random.Generator) -> Step:
        """The seeds, and k random entities to replace each of their two ends."""
        config = self._config
        nodes = self._offset + self._task.graphs.target.num_entities
        drawn = rng.integers(nodes, size=(2, len(seeds), config.negatives_per_seed))
        # Sorted: with all seeds in one step, nothing depends on the shuffle.
        source, target = seeds[np.argsort(seeds[:, 0])].T
        parts = [source, target, *drawn.reshape(2, -1)]
        ids = [torch.from_numpy(np.ascontiguousarray(part)) for part in parts]
        if config.fanout is None:
            return Step(None, *ids)
        positions = torch.split(torch.arange(sum(map(len, ids))), [len(part) for part in ids])
        return Step(torch.cat(ids), *positions)


def _with_rejected(step: Step, pairs: Tensor) -> Step:
    """The step with these pairs of nodes, which are added to its nodes."""
    if step.nodes is None:
        return replace(step, rejected=pairs)
    places = len(step.nodes) + torch.arange(pairs.numel()).view_as(pairs)
    return replace(step, nodes=torch.cat([step.nodes, pairs.flatten()]), rejected=places)


def _undecided(num_entities: int, decided: IntArray) -> IntArray:
    """The entities that are in no seed pair."""
    free = np.ones(num_entities, dtype=bool)
    free[decided] = False
    return np.flatnonzero(free)


def _draw(pool: IntArray, count: int, rng: np.random.Generator) -> Tensor:
    """`count` different ones of the pool, at a cost that grows with `count` only."""
    if len(pool) > count:
        pool = pool[rng.choice(len(pool), count, replace=False, shuffle=False)]
    return torch.from_numpy(pool)
