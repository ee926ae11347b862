"""`Workspace`: the folder of a run, with artifacts named by their keys."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from clusterea.errors import DamagedError, DataError, InputError, address
from clusterea.files import PART, STANDARD_OUTPUT, make_folder, part_of
from clusterea.run_lock import is_running
from clusterea.types import Benchmark
from clusterea.workspace.data import TENSORS, check_files, read_benchmark, write_benchmark
from clusterea.workspace.keys import fingerprint, recipe_key, task_key
from clusterea.workspace.manifest import Manifest
from clusterea.workspace.place import Place
from clusterea.workspace.tensors import (
    AGAIN,
    FileCheckpoints,
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
CHECKPOINT = re.compile(r"train-.*\.safetensors")
PLACE = ".place"  # in a local copy of a run: the URI of the run
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
    """A run's folder. Files are written under a temporary name, then renamed.

    If the folder is the local copy of a run at a URI, artifacts are fetched from there when they
    are first read, and sent there when they are finished.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if folder == STANDARD_OUTPUT:
            raise InputError("a run is a folder; it can't be written to standard output.")
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file; a run needs a folder.")
        self._clear_leftovers()
        original = folder / PLACE
        self._place = Place(original.read_text()) if original.is_file() else None

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
        if (self.folder / key).is_dir():
            return True
        return self._place is not None and self._place.has(f"{key}/{RECIPE}")

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
                if not (self.folder / key).is_dir():
                    raise
            self._send(key)
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def artifact(self, key: str) -> Path:
        """The folder of an artifact, which is fetched if it is not here."""
        path = self.folder / key
        if self._place is not None and not path.is_dir() and self.has(key):
            beside = part_of(path)
            beside.mkdir()
            try:
                for name in self._place.names(key):
                    self._place.fetch(f"{key}/{name}", beside / name)
                beside.rename(path)
            finally:
                shutil.rmtree(beside, ignore_errors=True)
        return path

    def _send(self, key: str) -> None:
        """Sends an artifact to its place. The recipe comes last: where it is, the rest is too."""
        if self._place is not None:
            names = sorted(each.name for each in (self.folder / key).iterdir())
            for name in sorted(names, key=lambda name: name == RECIPE):
                self._place.send(self.folder / key / name, f"{key}/{name}")

    def recipe(self, key: str) -> dict[str, Any]:
        """The recipe of an artifact: stage, config and parents. Its key is a hash of them."""
        path = self.folder / key / RECIPE
        try:
            if self._place is None or path.parent.is_dir():
                text = path.read_text()
            else:
                text = self._place.read(f"{key}/{RECIPE}").decode()
            found = json.loads(text)
            if recipe_key(found["stage"], found["config"], found["parents"]) != key:
                raise ValueError("it is of another artifact")
        except FileNotFoundError as error:
            raise DamagedError(path, f"is missing; {AGAIN}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedError(path, f"is damaged; {AGAIN}") from error
        return dict(found)

    def remove(self, key: str) -> None:
        """Removes an artifact, atomically."""
        if self._place is not None:
            self._place.remove(f"{key}/{RECIPE}")
            self._place.remove(key)
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
        return read_tensors(self.artifact(key) / TENSORS, key)

    def tensors_file(self, key: str) -> Path:
        """The file with the tensors of the artifact `key`."""
        return self.folder / key / TENSORS

    def checkpoints(self, key: str, warn: Warn = ignore) -> FileCheckpoints:
        """The checkpoint of the training that makes the artifact `key`."""
        name = f"{CHECKPOINTS}/{key}.safetensors"
        return FileCheckpoints(self.folder / name, warn=warn, place=self._place)

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
                check_files(self.artifact(key))
                return key
            except DamagedError as error:
                warn(f"{address(error.path)} is damaged or missing: the data are stored again.")
                self.remove(key)
        with self.new(key, {"stage": "data", "config": config, "parents": {}}) as filled:
            write_benchmark(benchmark, filled, key)
        return key

    def load_benchmark(self, key: str) -> Benchmark:
        """The data of the artifact `key`."""
        return read_benchmark(self.artifact(key))

    def original_data(self) -> Benchmark:
        """The data of the run, without the answers of a person.

        Raises:
            DataError: The folder has none.
            DamagedError: The data are damaged.
        """
        tasks = self._tasks()
        for key in self._names():
            if ARTIFACT.fullmatch(key) and key.startswith("data-"):
                task = self.recipe(key)["config"].get("task")
                if task in tasks and task_key((found := self.load_benchmark(key)).task) == task:
                    return found
        raise DataError(self.folder, "expected a run with its data; got none.")

    # ---- the task of the folder

    def check_task(self, task: str, option: str = "--overwrite") -> None:
        """Raises if the folder has a run of other data, or files that a run would replace.

        Args:
            task: From `task_key`.
            option: The option that removes them, for the message.
        """
        is_run = Manifest.path(self.folder).exists() or any(map(ARTIFACT.fullmatch, self._names()))
        there = () if self._place is None else self._place.names()
        outputs = [name for name in OUTPUTS if (self.folder / name).exists() or name in there]
        tasks, unsure = self._tasks(), ""
        if outputs and not is_run:
            raise InputError(
                f"{address(self.folder / outputs[0])} exists, but no run made it. "
                f"Choose another folder, or replace it with {option}."
            )
        if not tasks:  # unreadable: an error only if outputs could be lost
            tasks, unsure = (
                {""} if outputs else {task},
                ", or one that can't be read or is of an earlier version",
            )
        if task not in tasks:
            raise InputError(
                f"{address(self.folder)} holds a run of other graphs or seeds{unsure}. "
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
            if ARTIFACT.fullmatch(name) and (path.is_dir() or self._place is not None):
                self.remove(name)
            elif name in files or OF_EARLIER_VERSIONS.fullmatch(name):
                self._unlink(name)
        for name in filter(CHECKPOINT.fullmatch, self._names(CHECKPOINTS)):
            self._unlink(f"{CHECKPOINTS}/{name}")
        with suppress(OSError):  # it is missing or not empty
            (self.folder / CHECKPOINTS).rmdir()

    def _unlink(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)
        if self._place is not None:
            self._place.remove(name)

    def _names(self, inside: str = "") -> list[str]:
        folder = self.folder / inside
        entries = folder.iterdir() if folder.is_dir() else ()
        there = () if self._place is None else self._place.names(inside)
        return sorted({*there, *(entry.name for entry in entries)})


def _parts(folder: Path) -> list[Path]:
    """The temporary files and folders in a run's folder and its subfolders."""
    parts = list(folder.glob(".*.part"))
    for inner in folder.glob("*/"):
        try:
            parts += inner.glob(".*.part")
        except OSError:  # another process has just renamed or removed it
            continue
    return parts
