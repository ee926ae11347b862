"""`SAMPLERS` by name, and `sample`: mini-batches of a bounded size."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from clusterea.config import SamplingConfig
from clusterea.errors import look_up
from clusterea.graph.subtask import subtask
from clusterea.samplers.cmcs import cmcs
from clusterea.samplers.iscs import iscs
from clusterea.samplers.metis_cps import metis_cps
from clusterea.samplers.sampler import Resources, Sampler, reverse
from clusterea.samplers.vps import vps
from clusterea.seeding import derived_seed
from clusterea.types import AlignmentTask, Pair, Partition

CMCS = Sampler(cmcs, settings=("classifier", "kmeans_starts"))
ISCS = Sampler(iscs, settings=("gcn_epochs",), needs_metis=True)
METIS_CPS = Sampler(metis_cps, needs_metis=True)
VPS = Sampler(vps)

SAMPLERS: dict[str, Sampler] = {
    "cmcs": CMCS,
    "iscs": ISCS,
    "iscs-reverse": reverse(ISCS),
    "vps": VPS,
    "metis-cps": METIS_CPS,
    "metis-cps-reverse": reverse(METIS_CPS),
}
MAX_DEPTH = 3  # splits by the sampler itself before a mini-batch is split at random
LEAST_SHARE = 1.1  # METIS's own parts differ by 3 %


def find_sampler(name: str) -> Sampler:
    """The sampler called `name`. The error for an unknown name lists the known ones."""
    return look_up("sampler", name, SAMPLERS)


def recipe(name: str, config: SamplingConfig) -> dict[str, Any]:
    """The settings that the result of the sampler called `name` depends on."""
    own = find_sampler(name).settings
    others = {field for each in SAMPLERS.values() for field in each.settings}.difference(own)
    return {field: value for field, value in asdict(config).items() if field not in others}


def sample(
    name: str,
    task: AlignmentTask,
    embeddings: Pair[Tensor],
    config: SamplingConfig,
    resources: Resources | None = None,
) -> Partition:
    """Mini-batches with at most `config.max_batch` entities of either side.

    There are `config.num_batches` of them, and more if some had to be split; `num_batches` of the
    result says how many. One that is too large is split by the same sampler, as a task of its own.
    If the mean is well within the bound, mini-batches are kept even instead: moving the entities
    that fit elsewhere almost as well loses fewer links than a cut.
    """
    config = _evened(task, config)
    return _bounded(find_sampler(name), task, embeddings, config, resources or Resources(), depth=0)


def _evened(task: AlignmentTask, config: SamplingConfig) -> SamplingConfig:
    """The config with `largest_share` lowered to what `max_batch` allows, if that can be kept."""
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
    resources: Resources,
    depth: int,
) -> Partition:
    partition = sampler(task, embeddings, config, resources)
    most = config.max_batch
    if most is None:
        return partition
    labels = partition.labels.map(torch.clone)
    used = 0  # mini-batches numbered so far; a split shifts the later numbers
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
            # VPS deals evenly, so its pieces are small enough.
            splitter = sampler if depth < MAX_DEPTH else VPS
            inner = _without_empty(_bounded(splitter, part, rows, smaller, resources, depth + 1))
        for side, ids, local in zip(labels, batch, inner.labels, strict=True):
            side[ids] = used + local
        used += inner.num_batches
    return Partition(labels, used)


def _without_empty(partition: Partition) -> Partition:
    """The same mini-batches, numbered without the empty ones."""
    source, target = partition.labels
    used, numbers = torch.unique(torch.cat([source, target]), return_inverse=True)
    return Partition(Pair(numbers[: len(source)], numbers[len(source) :]), len(used))
