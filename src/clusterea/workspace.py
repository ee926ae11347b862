"""`Workspace`: a run is a folder of artifacts, named by their recipes, whole if they are there."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clusterea.checksums import file_checksum, sealed, tensors_checksum, unsealed
from clusterea.errors import DamagedError, DataError, InputError
from clusterea.files import PART, STANDARD_OUTPUT, make_folder, part_of, replacing
from clusterea.run_lock import is_running
from clusterea.types import AlignmentTask, Benchmark, IntArray, KnowledgeGraph, Names, Pair

if TYPE_CHECKING:
    from torch import Tensor

VERSION = 3  # of the artifacts' form; part of every recipe
RECIPE = "recipe.json"
ABOUT = "about.json"
RUN = "run"  # the name of `run.json`
TENSORS = "tensors.safetensors"
DATA_FILES = (
    TENSORS,
    *(
        f"{side}_{kind}.parquet"
        for kind in ("entities", "relations")
        for side in ("source", "target")
    ),
)
OUTPUTS = (
    *("alignment.tsv", "unmatched_source.tsv", "unmatched_target.tsv", "candidates.parquet"),
    *("metrics.json", "report.html", f"{RUN}.json"),
)
TASK_FILE = "task.json"
ARTIFACT = re.compile(r"(data|held|train|sample|metis|fuse|pseudo|match|given)-[0-9a-f]{12}")
POINTER = re.compile(
    r"(task|data|held|fuse|match|given|rehearsal|train(-\d+)?|sample-[a-z-]+)\.json"
)
EXPORTED = {  # what `export` writes unless told where, by format
    "tsv": "exported.tsv",
    "parquet": "exported.parquet",
    "ntriples": "exported.nt",
    "sssom": "exported.sssom.tsv",
    "oaei": "exported.rdf",
}
AGAIN = "`clusterea align` with the same data and --out makes it again."

Warn = Callable[[str], None]


def ignore(message: str) -> None:
    """Tells nobody."""
    del message


def recipe_key(stage: str, recipe: Mapping[str, Any], parents: Mapping[str, str]) -> str:
    """`stage-0123456789ab`: the same for the same stage, settings and parents."""
    text = json.dumps(
        {"version": VERSION, "stage": stage, "recipe": recipe, "parents": parents},
        sort_keys=True,
        ensure_ascii=False,
    )
    return f"{stage}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


class Workspace:
    """A run's folder. What is written is written beside its place and renamed: never half there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if folder == STANDARD_OUTPUT:
            raise InputError("a run is a folder; it can't be written to standard output.")
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file; a run needs a folder.")
        self._clear_leftovers()

    def _clear_leftovers(self) -> None:
        """Removes what processes that were killed had begun."""
        for part in _listed(self.folder):
            ours = PART.search(part.name)
            if ours and not is_running(int(ours["process"])):
                if part.is_dir():
                    shutil.rmtree(part, ignore_errors=True)
                else:
                    part.unlink(missing_ok=True)

    def find(self, key: str) -> Path | None:
        """The folder of a finished artifact, if it is there."""
        place = self.folder / key
        return place if place.is_dir() else None

    @contextmanager
    def new(self, key: str, recipe: Mapping[str, Any]) -> Iterator[Path]:
        """A folder to fill, which becomes the artifact when the block ends without an error.

        Where another process finished the same artifact meanwhile, its copy stays: it has the same
        recipe, so it is as good.
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
                if self.find(key) is None:
                    raise
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def recipe(self, key: str) -> dict[str, Any]:
        """What an artifact was made of: stage, config and parents. Its key is a hash of them."""
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
        """Takes an artifact away, at once."""
        place = part_of(self.folder / key)
        try:
            (self.folder / key).rename(place)
        except FileNotFoundError:
            return
        shutil.rmtree(place, ignore_errors=True)

    def check_task(self, task: str, option: str = "--overwrite") -> None:
        """Raises where the folder holds a run of other data, or files that a run would replace.

        Args:
            task: From `task_key`.
            option: How the caller asks for them to be removed.
        """
        if not self._is_run():
            for name in OUTPUTS:
                if (self.folder / name).exists():
                    raise InputError(
                        f"{self.folder / name} is there, and no run made it. "
                        f"Choose another folder, or replace it with {option}."
                    )
            return
        try:
            is_other, unsure = self.current("task") != task, ""
        except DataError:  # none, or a damaged one
            tasks = set(self._artifacts_tasks())
            can_lose = bool(tasks) or any((self.folder / name).exists() for name in OUTPUTS)
            is_other, unsure = task not in tasks and can_lose, ", or one that can't be read"
        if is_other:
            raise InputError(
                f"{self.folder} holds a run of other graphs or seeds{unsure}. "
                f"Choose another folder, or remove that run with {option}."
            )

    def _artifacts_tasks(self) -> Iterator[str]:
        """The tasks that artifacts of the folder were made of, as far as they can be read."""
        keys = sorted(e.name for e in self.folder.iterdir() if ARTIFACT.fullmatch(e.name))
        for key in keys:
            with suppress(DamagedError):
                if of_task := self.recipe(key)["parents"].get("task"):
                    yield of_task
        for key in keys:
            if key.startswith("data-"):  # these take longer to read
                with suppress(DamagedError):
                    yield task_key(self._benchmark(key).task)

    def claim(self, task: str, *, overwrite: bool = False, option: str = "--overwrite") -> None:
        """Makes the folder that of a run of this task; `overwrite` removes the run it holds."""
        if overwrite:
            self.clear()
        self.check_task(task, option)
        self.point("task", task)

    def clear(self) -> None:
        """Removes all that a run made, and nothing else."""
        entries = sorted(self.folder.iterdir()) if self.folder.is_dir() else []
        files = {*OUTPUTS, *EXPORTED.values()}
        for entry in entries:
            if entry.is_dir() and ARTIFACT.fullmatch(entry.name):
                self.remove(entry.name)
            elif entry.name in files or (POINTER.fullmatch(entry.name) and entry.name != TASK_FILE):
                entry.unlink(missing_ok=True)
        for checkpoint in (self.folder / "checkpoints").glob("train-*.safetensors"):
            checkpoint.unlink(missing_ok=True)
        with suppress(OSError):  # it is not there, or holds something else
            (self.folder / "checkpoints").rmdir()
        (self.folder / TASK_FILE).unlink(missing_ok=True)  # last, should this be stopped half way

    def _is_run(self) -> bool:
        entries = self.folder.iterdir() if self.folder.is_dir() else ()
        names = {entry.name for entry in entries}
        return bool({TASK_FILE, "data.json"} & names) or any(map(ARTIFACT.fullmatch, names))

    def save_benchmark(self, benchmark: Benchmark, warn: Warn = ignore) -> str:
        """The data as an artifact, so that later commands need the run's folder only; its key.

        `warn` is told where a damaged one was there and is replaced.
        """
        recipe = {"fingerprint": fingerprint(benchmark)}
        key = recipe_key("data", recipe, {})
        if self.find(key) is not None:
            try:
                self.recipe(key)
                _check_files(self.folder / key)
            except DamagedError as error:
                warn(f"{error.path} is damaged or missing: the data are stored again.")
                self.remove(key)
        if self.find(key) is None:
            described = {"stage": "data", "config": recipe, "parents": {}}
            with self.new(key, described) as place:
                _write_benchmark(benchmark, place, key)
        self.point("data", key)
        return key

    def load_benchmark(self) -> Benchmark:
        """The data that the run works on."""
        return self._benchmark(self.current("data"))

    def _benchmark(self, key: str) -> Benchmark:
        place = self.folder / key
        try:
            return _read_benchmark(place)
        except DamagedError:
            raise
        except (FileNotFoundError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
            raise DamagedError(place, f"is damaged; {AGAIN}") from error

    def point(self, stage: str, key: str) -> None:
        """Makes this artifact the one that later commands go on from."""
        write_json(self._pointer(stage), sealed(stage, {"key": key}))

    def current(self, stage: str) -> str:
        """The key of the artifact that was last made or used for a stage."""
        pointer = self._pointer(stage)
        if not pointer.is_file():
            raise DataError(
                self.folder, "expected a run, as `clusterea train` makes one; got none."
            )
        return str(read_sealed(pointer, stage)["key"])

    def forget(self, stage: str) -> None:
        """Later commands no longer go on from what was made for a stage."""
        self._pointer(stage).unlink(missing_ok=True)

    def has(self, stage: str) -> bool:
        """Whether a stage has been done."""
        return self._pointer(stage).is_file()

    def _pointer(self, stage: str) -> Path:
        return self.folder / f"{stage}.json"

    def save_tensors(
        self, key: str, recipe: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> Path:
        """Tensors as the artifact `key`; the file that holds them."""
        with self.new(key, recipe) as place:
            write_tensors(place / TENSORS, tensors, key)
        return self.tensors_file(key)

    def tensors_file(self, key: str) -> Path:
        """The file with the tensors of the artifact `key`."""
        return self.folder / key / TENSORS


class FileCheckpoints:
    """Training's checkpoints in one file that is replaced whole.

    Five gigabytes after every epoch would take longer than the epochs: a state that comes sooner
    than its size allows is let go, so that writing takes a few percent of the time at most.
    """

    def __init__(self, path: Path, bytes_per_second: float = 25e6, *, warn: Warn = ignore) -> None:
        self._path = path
        self._rate = bytes_per_second
        self._warn = warn
        self._last = time.monotonic()

    def latest(self) -> Mapping[str, Tensor] | None:
        """The state that was saved last, if one was and it is as it was saved."""
        try:
            return read_tensors(self._path, self._path.name)
        except FileNotFoundError:
            return None
        except DamagedError:
            self.reject()
            return None

    def reject(self) -> None:
        """Removes a state that can't be used, and says so."""
        self._warn(f"{self._path} is damaged: training begins anew.")
        self.remove()

    def save(self, state: Mapping[str, Tensor]) -> None:
        """Keeps a state in the place of the one before, unless that is too young."""
        size = sum(each.nbytes for each in state.values())
        if (time.monotonic() - self._last) * self._rate < size:
            return
        write_tensors(self._path, state, self._path.name)
        self._last = time.monotonic()

    def remove(self) -> None:
        """Once the result is there, nothing needs them."""
        self._path.unlink(missing_ok=True)


def task_key(task: AlignmentTask) -> str:
    """The key of a task as a parent: graphs, seeds, tie keys and structural entities.

    A stage sees nothing else. Test links have no part in it, so that no artifact depends on them.
    """
    digest = hashlib.sha256()
    for graph in task.graphs:
        digest.update(f"{graph.num_entities} {graph.num_relations}".encode())
    _feed(digest, [graph.triples for graph in task.graphs])
    _feed(digest, [task.seeds, *task.tie_keys])
    if any(len(side) for side in task.structural):
        _feed(digest, task.structural)
    return recipe_key("task", {"fingerprint": digest.hexdigest()}, {})


def fingerprint(benchmark: Benchmark) -> str:
    """A hash of all there is: the task, the names, and what the result is judged by."""
    digest = hashlib.sha256(task_key(benchmark.task).encode())
    _feed(digest, [benchmark.test_links, *(benchmark.dangling or ())])
    for names in [*benchmark.names, *benchmark.relation_names]:
        # Joining makes an array that starts at its buffers' beginning, whatever it was cut from.
        whole = pa.concat_arrays([names.arrow, pa.array([""], pa.large_string())])
        for buffer in whole.buffers()[1:]:
            digest.update(buffer)
    return digest.hexdigest()


def _feed(digest: Any, arrays: Iterable[IntArray]) -> None:
    for array in arrays:
        digest.update(str(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)


def write_tensors(path: Path, tensors: Mapping[str, Tensor], name: str = "") -> None:
    """Tensors as one safetensors file that is there whole or not at all.

    `name` says what they are; they are read again under the same name only.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    contents = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
    seal = {"checksum": tensors_checksum(name, contents)}
    with replacing(path, sum(value.nbytes for value in contents.values())) as beside:
        beside.touch()
        mode = beside.stat().st_mode  # save_file's own file is for its owner alone
        try:
            save_file(contents, beside, seal)
        except SafetensorError as error:
            raise _system_error(error) from error
        beside.chmod(mode)


def read_tensors(path: Path, name: str = "") -> dict[str, Tensor]:
    """The tensors of a safetensors file, on the host.

    Raises:
        DamagedError: They are not as they were written, or were written under another name.
        OSError: The file is missing or can't be opened, which is no damage.
    """
    from safetensors import SafetensorError, safe_open

    with path.open("rb"):  # safe_open calls every file missing that can't be opened
        pass
    try:
        with safe_open(path, framework="pt") as file:
            seal = (file.metadata() or {}).get("checksum")
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, RuntimeError) as error:
        raise DamagedError(path, f"is damaged ({error}).") from error
    if seal != tensors_checksum(name, tensors):
        raise DamagedError(path, "is damaged: it is not what was written.")
    return tensors


def _system_error(error: Exception) -> OSError:
    """The operating system's error that safetensors reports in words."""
    found = re.search(r"os error (\d+)", str(error))
    if found is None:
        return OSError(str(error))
    return OSError(int(found[1]), os.strerror(int(found[1])))


def write_json(path: Path, value: Any) -> None:
    """JSON that is there whole or not at all."""
    with replacing(path) as beside:
        beside.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def read_sealed(path: Path, name: str) -> dict[str, Any]:
    """JSON that was written sealed under this name."""
    try:
        return unsealed(name, path.read_text())
    except FileNotFoundError as error:
        raise DamagedError(path, f"is missing; {AGAIN}") from error
    except ValueError as error:
        raise DamagedError(path, f"is damaged, or of another version; {AGAIN}") from error


def _listed(folder: Path) -> list[Path]:
    """What is being written in a run's folder and in the folders there."""
    parts = list(folder.glob(".*.part"))
    for place in folder.glob("*/"):
        try:
            parts += place.glob(".*.part")
        except OSError:  # another run has just renamed or removed it
            continue
    return parts


def _write_benchmark(benchmark: Benchmark, place: Path, key: str) -> None:
    from torch import from_numpy

    source, target = benchmark.task.graphs
    arrays = {
        "source_triples": source.triples,
        "target_triples": target.triples,
        "seeds": benchmark.task.seeds,
        "test_links": benchmark.test_links,
        "source_keys": benchmark.task.tie_keys.source,
        "target_keys": benchmark.task.tie_keys.target,
        "source_structural": benchmark.task.structural.source,
        "target_structural": benchmark.task.structural.target,
    }
    if benchmark.dangling is not None:
        arrays["source_dangling"], arrays["target_dangling"] = benchmark.dangling
    write_tensors(place / TENSORS, {k: from_numpy(v.copy()) for k, v in arrays.items()}, key)
    for kind, pair in (("entities", benchmark.names), ("relations", benchmark.relation_names)):
        for side, names in (("source", pair.source), ("target", pair.target)):
            with replacing(place / f"{side}_{kind}.parquet") as beside:
                pq.write_table(pa.table({"name": names.arrow}), beside)
    about = {
        "dropped": dict(benchmark.dropped),
        "format": benchmark.format,
        "seeds_from": dict(benchmark.seeds_from),
        "files": {name: file_checksum(place / name) for name in DATA_FILES},
    }
    write_json(place / ABOUT, sealed(key, about))


def _check_files(place: Path) -> dict[str, Any]:
    """What is said about the data in `about.json`, once their files have been compared with it."""
    about = read_sealed(place / ABOUT, place.name)
    for name in DATA_FILES:
        path = place / name
        if not path.is_file():
            raise DamagedError(path, f"is missing; {AGAIN}")
        if file_checksum(path) != about["files"].get(name):
            raise DamagedError(path, f"is damaged; {AGAIN}")
    return about


def _read_benchmark(place: Path) -> Benchmark:
    about = _check_files(place)
    arrays = {k: v.numpy() for k, v in read_tensors(place / TENSORS, place.name).items()}

    def names(kind: str) -> Pair[Names]:
        return Pair("source", "target").map(
            lambda side: Names(
                pq.read_table(place / f"{side}_{kind}.parquet")["name"].combine_chunks()
            )
        )

    entities, relations = names("entities"), names("relations")
    graphs = (
        Pair("source", "target")
        .zip(entities.zip(relations))
        .map(
            lambda side: KnowledgeGraph(
                arrays[f"{side[0]}_triples"], len(side[1][0]), len(side[1][1])
            )
        )
    )
    dangling = None
    if "source_dangling" in arrays:
        dangling = Pair(arrays["source_dangling"], arrays["target_dangling"])
    return Benchmark(
        AlignmentTask(
            graphs,
            arrays["seeds"],
            Pair(arrays["source_keys"], arrays["target_keys"]),
            Pair(arrays["source_structural"], arrays["target_structural"]),
        ),
        arrays["test_links"],
        entities,
        relations,
        dangling,
        about["dropped"],
        about["format"],
        about["seeds_from"],
    )
