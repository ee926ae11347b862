"""A run's folder: artifacts by key, the data, and a manifest that describes the run."""

from clusterea.workspace.copied import in_folder
from clusterea.workspace.folder import DECISIONS, EXPORTED, OUTPUTS, DataKeys, Workspace
from clusterea.workspace.keys import fingerprint, recipe_key, task_key
from clusterea.workspace.manifest import Manifest
from clusterea.workspace.place import Place
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
    "Place",
    "Warn",
    "Workspace",
    "fingerprint",
    "ignore",
    "in_folder",
    "read_tensors",
    "recipe_key",
    "task_key",
    "write_json",
    "write_tensors",
]
