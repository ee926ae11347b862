"""The four stages, each with its artifact: found in the run's folder, or made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from clusterea.config import FusionConfig, MatchingConfig, SamplingConfig, TrainingConfig
from clusterea.pipeline.artifacts import (
    Artifacts,
    pack_alignment,
    pack_pair,
    pack_partition,
    pack_similarity,
    unpack_alignment,
    unpack_pair,
    unpack_partition,
    unpack_similarity,
)
from clusterea.pipeline.retry import with_smaller_blocks
from clusterea.types import Alignment, AlignmentTask, Pair, Partition, Similarity
from clusterea.workspace import FileCheckpoints, recipe_key

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from clusterea.samplers import Cut
    from clusterea.training import Progress

Steps = Callable[[str, int, int], None]  # what is being done, how far, of how much


def train_stage(
    artifacts: Artifacts,
    task_key: str,
    task: AlignmentTask,
    config: TrainingConfig,
    device: torch.device,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[str, Pair[Tensor]]:
    """The embeddings of `task` and their key; training that was broken off goes on."""
    from clusterea.training import train

    recipe, parents = config.recipe(), {"task": task_key}
    checkpoints = None
    if artifacts.workspace is not None:
        name = f"{recipe_key('train', recipe, parents)}.safetensors"
        checkpoints = FileCheckpoints(artifacts.workspace.folder / "checkpoints" / name)

    def make() -> Pair[Tensor]:
        return train(task, config, device=device, checkpoints=checkpoints, progress=progress)

    key, embeddings = artifacts.tensors("train", recipe, parents, make, pack_pair, unpack_pair)
    if checkpoints is not None and artifacts.workspace is not None:
        checkpoints.remove()
        artifacts.workspace.point("train", key)
    return key, embeddings


def sample_stage(
    artifacts: Artifacts,
    train_key: str,
    task: AlignmentTask,
    embeddings: Callable[[], Pair[Tensor]],
    sampler: str,
    config: SamplingConfig,
    device: torch.device,
    cut: Cut,
) -> tuple[str, Partition]:
    """The mini-batches of one sampler and their key. `embeddings` is called if they are needed."""
    from clusterea.samplers import Place, sample

    key, partition = artifacts.tensors(
        "sample",
        {"sampler": sampler, **config.recipe(sampler)},
        {"train": train_key},
        lambda: sample(sampler, task, embeddings(), config, Place(device, cut)),
        pack_partition,
        unpack_partition,
    )
    if artifacts.workspace is not None:
        artifacts.workspace.point(f"sample-{sampler}", key)
    return key, partition


def fuse_stage(
    artifacts: Artifacts,
    parents: Mapping[str, str],
    task: AlignmentTask,
    embeddings: Callable[[], Pair[Tensor]],
    partitions: Mapping[str, Partition],
    config: FusionConfig,
    device: torch.device,
    progress: Steps | None = None,
) -> tuple[str, Similarity]:
    """The fused similarity, on the host, and its key.

    Args:
        artifacts: Where results are kept.
        parents: The keys of the embeddings, as `train`, and of each partition, by its sampler.
        task: Its seeds are left out, its names' hashes decide ties.
        embeddings: Called if they are needed.
        partitions: By sampler.
        config: What to compute.
        device: Where.
        progress: Called now and then.
    """
    from clusterea.fusion import fuse

    def make(block_cells: int | None) -> Similarity:
        fused = fuse(
            embeddings(),
            list(partitions.values()),
            task.seeds,
            task.tie_keys,
            config,
            device=device,
            block_cells=block_cells,
            progress=progress,
        )
        return fused.to("cpu")

    key, similarity = artifacts.tensors(
        "fuse",
        config.recipe(),
        parents,
        lambda: with_smaller_blocks(make, device),
        pack_similarity,
        unpack_similarity,
    )
    if artifacts.workspace is not None:
        artifacts.workspace.point("fuse", key)
    return key, similarity


def match_stage(
    artifacts: Artifacts,
    fuse_key: str,
    task: AlignmentTask,
    similarity: Callable[[], Similarity],
    config: MatchingConfig,
    device: torch.device,
) -> tuple[str, Alignment]:
    """The alignment and its key."""
    from torch import from_numpy

    from clusterea.matching import match

    def make() -> Alignment:
        keys = task.tie_keys.map(lambda side: from_numpy(side.copy()).to(device))
        scores = similarity().to(device)
        found = match(scores, keys, task.seeds, method=config.method, seed=config.seed)
        return found.to("cpu")

    key, alignment = artifacts.tensors(
        "match", config.recipe(), {"fuse": fuse_key}, make, pack_alignment, unpack_alignment
    )
    if artifacts.workspace is not None:
        artifacts.workspace.point("match", key)
    return key, alignment
