"""A run's folder: artifacts by key, the data, and a manifest that describes the run."""

from clusterea.workspace.folder import DECISIONS, EXPORTED, OUTPUTS, DataKeys, Workspace
from clusterea.workspace.keys import fingerprint, recipe_key, task_key
from clusterea.workspace.manifest import Manifest
from clusterea.workspace.tensors import (
    FileCheckpoints,
    Warn,
    ignore,
    read_tensors,
    write_json,
    write_tensors,
)

__all__ = [
    "DECISIONS",
    "EXPORTED",
    "OUTPUTS",
    "DataKeys",
    "FileCheckpoints",
    "Manifest",
    "Warn",
    "Workspace",
    "fingerprint",
    "ignore",
    "read_tensors",
    "recipe_key",
    "task_key",
    "write_json",
    "write_tensors",
]
