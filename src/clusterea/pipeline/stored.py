"""A run's results, read back from its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterea.errors import DataError
from clusterea.pipeline.artifacts import unpack_alignment, unpack_pair, unpack_similarity
from clusterea.workspace import Workspace, read_tensors

if TYPE_CHECKING:
    from torch import Tensor

    from clusterea.types import Alignment, Pair, Similarity


def stored_embeddings(workspace: Workspace) -> Pair[Tensor]:
    """The embeddings that were trained last."""
    return unpack_pair(read_tensors(workspace.tensors_file(workspace.current("train"))))


def stored_similarity(workspace: Workspace) -> Similarity:
    """The similarity that was fused last."""
    return unpack_similarity(read_tensors(workspace.tensors_file(_key(workspace, "fuse"))))


def stored_alignment(workspace: Workspace) -> Alignment:
    """The alignment that was matched last."""
    return unpack_alignment(read_tensors(workspace.tensors_file(_key(workspace, "match"))))


def _key(workspace: Workspace, stage: str) -> str:
    workspace.current("data")  # a folder that is no run at all is answered as such
    if not workspace.has(stage):
        raise DataError(
            workspace.folder, f"has no result of `clusterea {stage}` yet. Run that, or `align`."
        )
    return workspace.current(stage)
