"""`Workspace`: the folder of a run, with artifacts named by their keys."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from clusterea.errors import DamagedError, DataError, InputError
from clusterea.files import PART, STANDARD_OUTPUT, make_folder, part_of
from clusterea.run_lock import is_running
from clusterea.types import Benchmark
from clusterea.workspace.data import TENSORS, check_files, read_benchmark, write_benchmark
from clusterea.workspace.keys import fingerprint, recipe_key, task_key
from clusterea.workspace.manifest import Manifest
from clusterea.workspace.tensors import (
    AGAIN,
    Warn,
    ignore,
    read_tensors,
    write_json,
    write_tensors,
)

if TYPE_CHECKING:
    from torch import Tensor

RECIPE = "recipe.json"
OUTPUTS = (  # files that `align` writes for users; the manifest comes last
    *("alignment.tsv", "unmatched_source.tsv", "unmatched_target.tsv", "candidates.parquet"),
    *("metrics.json", "report.html", "run.json"),
)
STAGES = (
    *("data", "names", "features", "train", "translation", "trust"),
    *("sample", "metis", "fuse", "pseudo", "match"),
)
ARTIFACT = re.compile(rf"({'|'.join(STAGES)})-[0-9a-f]{{12}}")
OF_EARLIER_VERSIONS = re.compile(  # files that runs used to have instead of a manifest
    r"(task|data|held|fuse|match|given|rehearsal|train(-\d+)?|sample-[a-z-]+)\.json"
)
DECISIONS = "decisions.sssom.tsv"  # what a person answered; `--overwrite` keeps it
CHECKPOINTS = "checkpoints"
EXPORTED = {  # default files of `export`, by format
    "tsv": "exported.tsv",
    "parquet": "exported.parquet",
    "ntriples": "exported.nt",
    "sssom": "exported.sssom.tsv",
    "oaei": "exported.rdf",
}


class DataKeys(NamedTuple):
    """The keys of a run's data."""

    task: str  # of the task without decisions: the folder is for runs of this one
    artifact: str  # of the stored data, with decisions


class Workspace:
    """A run's folder. Files are written under a temporary name, then renamed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if folder == STANDARD_OUTPUT:
            raise InputError("a run is a folder; it can't be written to standard output.")
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file; a run needs a folder.")
        self._clear_leftovers()

    def _clear_leftovers(self) -> None:
        """Removes temporary files of processes that were killed."""
        for part in _parts(self.folder):
            ours = PART.search(part.name)
            if ours and not is_running(int(ours["process"])):
                if part.is_dir():
                    shutil.rmtree(part, ignore_errors=True)
                else:
                    part.unlink(missing_ok=True)

    # ---- artifacts

    def has(self, key: str) -> bool:
        """Whether the artifact exists."""
        return (self.folder / key).is_dir()

    @contextmanager
    def new(self, key: str, recipe: Mapping[str, Any]) -> Iterator[Path]:
        """A folder to fill, which becomes the artifact when the block ends without an error.

        If another process has finished the same artifact, its copy stays: it has the same recipe.
        """
        make_folder(self.folder)
        beside = part_of(self.folder / key)
        beside.mkdir()
        try:
            yield beside
            write_json(beside / RECIPE, recipe)
            try:
                beside.rename(self.folder / key)
            except OSError:
                if not self.has(key):
                    raise
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def recipe(self, key: str) -> dict[str, Any]:
        """The recipe of an artifact: stage, config and parents. Its key is a hash of them."""
        path = self.folder / key / RECIPE
        try:
            found = json.loads(path.read_text())
            if recipe_key(found["stage"], found["config"], found["parents"]) != key:
                raise ValueError("it is of another artifact")
        except FileNotFoundError as error:
            raise DamagedError(path, f"is missing; {AGAIN}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedError(path, f"is damaged; {AGAIN}") from error
        return dict(found)

    def remove(self, key: str) -> None:
        """Removes an artifact, atomically."""
        beside = part_of(self.folder / key)
        try:
            (self.folder / key).rename(beside)
        except FileNotFoundError:
            return
        shutil.rmtree(beside, ignore_errors=True)

    def save_tensors(
        self, key: str, recipe: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> None:
        """Writes tensors as the artifact `key`."""
        with self.new(key, recipe) as filled:
            write_tensors(filled / TENSORS, tensors, key)

    def load_tensors(self, key: str) -> dict[str, Tensor]:
        """The tensors of the artifact `key`."""
        self.recipe(key)
        return read_tensors(self.tensors_file(key), key)

    def tensors_file(self, key: str) -> Path:
        """The file with the tensors of the artifact `key`."""
        return self.folder / key / TENSORS

    def checkpoint(self, key: str) -> Path:
        """The file with the checkpoint of the training that makes the artifact `key`."""
        return self.folder / CHECKPOINTS / f"{key}.safetensors"

    # ---- data

    def save_benchmark(
        self, benchmark: Benchmark, warn: Warn = ignore, task: str | None = None
    ) -> str:
        """Stores the data, so that later commands need only the run's folder; returns its key.

        A damaged copy is replaced with a warning.

        Args:
            benchmark: The data, with all decisions.
            warn: Gets the warning.
            task: The key of the task without decisions, if there are any.
        """
        claimed = task or task_key(benchmark.task)
        config = {"fingerprint": fingerprint(benchmark), "task": claimed}
        key = recipe_key("data", config, {})
        if self.has(key):
            try:
                self.recipe(key)
                check_files(self.folder / key)
                return key
            except DamagedError as error:
                warn(f"{error.path} is damaged or missing: the data are stored again.")
                self.remove(key)
        with self.new(key, {"stage": "data", "config": config, "parents": {}}) as filled:
            write_benchmark(benchmark, filled, key)
        return key

    def load_benchmark(self, key: str) -> Benchmark:
        """The data of the artifact `key`."""
        return read_benchmark(self.folder / key)

    # ---- the task of the folder

    def check_task(self, task: str, option: str = "--overwrite") -> None:
        """Raises if the folder has a run of other data, or files that a run would replace.

        Args:
            task: From `task_key`.
            option: The option that removes them, for the message.
        """
        is_run = Manifest.path(self.folder).exists() or any(map(ARTIFACT.fullmatch, self._names()))
        outputs = [name for name in OUTPUTS if (self.folder / name).exists()]
        tasks, unsure = self._tasks(), ""
        if outputs and not is_run:
            raise InputError(
                f"{self.folder / outputs[0]} exists, but no run made it. "
                f"Choose another folder, or replace it with {option}."
            )
        if not tasks:  # unreadable: an error only if outputs could be lost
            tasks, unsure = (
                {""} if outputs else {task},
                ", or one that can't be read or is of an earlier version",
            )
        if task not in tasks:
            raise InputError(
                f"{self.folder} holds a run of other graphs or seeds{unsure}. "
                f"Choose another folder, or remove that run with {option}."
            )

    def _tasks(self) -> set[str]:
        """The tasks of the run in this folder, from its manifest or its recipes; may be empty."""
        with suppress(DataError, KeyError, TypeError):
            return {Manifest.read(self.folder).task}
        found = set()
        for key in filter(ARTIFACT.fullmatch, self._names()):
            with suppress(DamagedError):
                recipe = self.recipe(key)
                found |= {recipe["config"].get("task"), recipe["parents"].get("task")}
        return found - {None}

    def claim(self, task: str, *, overwrite: bool = False, option: str = "--overwrite") -> None:
        """Checks that the folder can have a run of this task; `overwrite` first removes its run."""
        if overwrite:
            self.clear()
        self.check_task(task, option)

    def clear(self) -> None:
        """Removes the files of a run, and nothing else."""
        files = {*OUTPUTS, *EXPORTED.values()}
        for name in self._names():
            path = self.folder / name
            if path.is_dir() and ARTIFACT.fullmatch(name):
                self.remove(name)
            elif name in files or OF_EARLIER_VERSIONS.fullmatch(name):
                path.unlink(missing_ok=True)
        for checkpoint in (self.folder / CHECKPOINTS).glob("train-*.safetensors"):
            checkpoint.unlink(missing_ok=True)
        with suppress(OSError):  # it is missing or not empty
            (self.folder / CHECKPOINTS).rmdir()

    def _names(self) -> list[str]:
        entries = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted(entry.name for entry in entries)


def _parts(folder: Path) -> list[Path]:
    """The temporary files and folders in a run's folder and its subfolders."""
    parts = list(folder.glob(".*.part"))
    for inner in folder.glob("*/"):
        try:
            parts += inner.glob(".*.part")
        except OSError:  # another process has just renamed or removed it
            continue
    return parts
