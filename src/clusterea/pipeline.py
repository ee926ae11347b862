"""The stages one after the other, each with its artifact; holds no algorithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clusterea.config import TrainingConfig
from clusterea.errors import InputError
from clusterea.types import AlignmentTask, Pair
from clusterea.workspace import FileCheckpoints, Workspace, read_tensors, recipe_key

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from clusterea.training import Progress


def choose_device(name: str) -> torch.device:
    """`auto` is the GPU where there is one."""
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda") and not name.startswith("cuda:"):
        raise InputError(f"--device must be auto, cpu or cuda. Got {name!r} instead.")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise InputError("--device cuda: torch sees no GPU here. Try --device cpu.")
    return torch.device(name)


def train_stage(
    workspace: Workspace,
    data_key: str,
    task: AlignmentTask,
    config: TrainingConfig,
    device: torch.device,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[str, Pair[Tensor]]:
    """The embeddings of `task` and their key: found in the run's folder, finished, or made."""
    from clusterea.training import train

    recipe = config.recipe()
    key = recipe_key("train", recipe, {"data": data_key})
    if workspace.find(key) is not None:
        tensors = read_tensors(workspace.tensors_file(key))
        return key, Pair(tensors["source"], tensors["target"])
    checkpoints = FileCheckpoints(workspace.folder / "checkpoints" / f"{key}.safetensors")
    embeddings = train(task, config, device=device, checkpoints=checkpoints, progress=progress)
    described = {"stage": "train", "config": recipe, "parents": {"data": data_key}}
    workspace.save_tensors(
        key, described, {"source": embeddings.source, "target": embeddings.target}
    )
    checkpoints.remove()
    return key, embeddings
