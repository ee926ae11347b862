"""One stage after the other, each with its artifact: found in the run's folder, or made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clusterea.config import SamplingConfig, TrainingConfig
from clusterea.types import AlignmentTask, Pair, Partition
from clusterea.workspace import FileCheckpoints, Workspace, read_tensors, recipe_key

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from clusterea.pipeline.cuts import Cuts
    from clusterea.training import Progress


def train_stage(
    workspace: Workspace,
    task_key: str,
    task: AlignmentTask,
    config: TrainingConfig,
    device: torch.device,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[str, Pair[Tensor]]:
    """The embeddings of `task` and their key; training that was broken off goes on."""
    from clusterea.training import train

    recipe, parents = config.recipe(), {"task": task_key}
    key = recipe_key("train", recipe, parents)
    if workspace.find(key) is None:
        checkpoints = FileCheckpoints(workspace.folder / "checkpoints" / f"{key}.safetensors")
        embeddings = train(task, config, device=device, checkpoints=checkpoints, progress=progress)
        workspace.save_tensors(
            key,
            {"stage": "train", "config": recipe, "parents": parents},
            {"source": embeddings.source, "target": embeddings.target},
        )
        checkpoints.remove()
    else:
        embeddings = load_embeddings(workspace, key)
    workspace.point("train", key)
    return key, embeddings


def load_embeddings(workspace: Workspace, key: str) -> Pair[Tensor]:
    """The embeddings that `train_stage` saved."""
    tensors = read_tensors(workspace.tensors_file(key))
    return Pair(tensors["source"], tensors["target"])


def sample_stage(
    workspace: Workspace,
    train_key: str,
    task: AlignmentTask,
    embeddings: Callable[[], Pair[Tensor]],
    sampler: str,
    config: SamplingConfig,
    device: torch.device,
    cuts: Cuts,
) -> tuple[str, Partition]:
    """The mini-batches of one sampler and their key. `embeddings` is called if they are needed."""
    import torch

    from clusterea.samplers import Place, sample

    recipe = {"sampler": sampler, **config.recipe(sampler)}
    parents = {"train": train_key}
    key = recipe_key("sample", recipe, parents)
    if workspace.find(key) is None:
        partition = sample(sampler, task, embeddings(), config, Place(device, cuts))
        workspace.save_tensors(
            key,
            {"stage": "sample", "config": recipe, "parents": parents},
            {
                "source": partition.labels.source,
                "target": partition.labels.target,
                "num_batches": torch.tensor([partition.num_batches]),
            },
        )
        return key, partition
    tensors = read_tensors(workspace.tensors_file(key))
    labels = Pair(tensors["source"], tensors["target"])
    return key, Partition(labels, int(tensors["num_batches"]))
