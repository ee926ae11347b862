"""`sample`: mini-batches by a sampler's name, none larger than memory allows."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from clusterea.config import SamplingConfig
from clusterea.errors import look_up
from clusterea.graph.subtask import subtask
from clusterea.samplers.cmcs import cmcs
from clusterea.samplers.iscs import iscs
from clusterea.samplers.metis_cps import metis_cps
from clusterea.samplers.sampler import Place, Sampler, reverse
from clusterea.samplers.vps import vps
from clusterea.seeding import derived_seed
from clusterea.types import AlignmentTask, Pair, Partition

SAMPLERS: dict[str, Sampler] = {
    "cmcs": cmcs,
    "iscs": iscs,
    "iscs-reverse": reverse(iscs),
    "vps": vps,
    "metis-cps": metis_cps,
    "metis-cps-reverse": reverse(metis_cps),
}
DEEPEST = 3  # so often a mini-batch is split by its own sampler before chance does it
LEAST_SHARE = 1.1  # METIS itself leaves parts uneven by 3 %


def find_sampler(name: str) -> Sampler:
    """The sampler called `name`; an unknown name is answered with the known ones."""
    return look_up("sampler", name, SAMPLERS)


def sample(
    name: str,
    task: AlignmentTask,
    embeddings: Pair[Tensor],
    config: SamplingConfig,
    place: Place | None = None,
) -> Partition:
    """Mini-batches with at most `config.max_batch` entities of either side.

    There are `config.num_batches`, and more where some had to be split: `num_batches` of the result
    says how many. One that is too large is split by the same sampler, as a task of its own. Where
    the mean is well within the bound, mini-batches are rather kept even: to move the entities that
    lose least by it costs fewer links than a cut.
    """
    config = _evened(task, config)
    return _bounded(find_sampler(name), task, embeddings, config, place or Place(), depth=0)


def _evened(task: AlignmentTask, config: SamplingConfig) -> SamplingConfig:
    """The config with a largest share that the bound allows, if it allows one that can be held."""
    entities = max(graph.num_entities for graph in task.graphs)
    if config.max_batch is None or not entities:
        return config
    share = config.max_batch * config.num_batches / entities
    if not LEAST_SHARE <= share < config.largest_share:
        return config
    return replace(config, largest_share=share)


def _bounded(
    sampler: Sampler,
    task: AlignmentTask,
    embeddings: Pair[Tensor],
    config: SamplingConfig,
    place: Place,
    depth: int,
) -> Partition:
    partition = sampler(task, embeddings, config, place)
    most = config.max_batch
    if most is None:
        return partition
    labels = partition.labels.map(torch.clone)
    used = 0  # mini-batches numbered so far; splitting pushes the later ones back
    for index, batch in enumerate(partition.mini_batches()):
        largest = max(len(side) for side in batch)
        pieces = -(-largest // most)
        if pieces <= 1:
            inner = Partition(batch.map(torch.zeros_like), 1)
        else:
            part = subtask(task, batch.map(lambda ids: ids.numpy()))
            rows = embeddings.zip(batch).map(lambda side: side[0][side[1].to(side[0].device)])
            seed = derived_seed(config.seed, "split", depth, index)
            smaller = replace(config, num_batches=pieces, seed=seed)
            # Chance deals evenly, so that what it splits is small enough for good.
            splitter = sampler if depth < DEEPEST else vps
            inner = _without_empty(_bounded(splitter, part, rows, smaller, place, depth + 1))
        for side, ids, local in zip(labels, batch, inner.labels, strict=True):
            side[ids] = used + local
        used += inner.num_batches
    return Partition(labels, used)


def _without_empty(partition: Partition) -> Partition:
    """The same mini-batches, numbered without those that nobody is in."""
    source, target = partition.labels
    used, numbers = torch.unique(torch.cat([source, target]), return_inverse=True)
    return Partition(Pair(numbers[: len(source)], numbers[len(source) :]), len(used))
