"""`Workspace`: a run is a folder of artifacts, named by their recipes, whole if they are there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clusterea.errors import DataError, InputError
from clusterea.files import PART, part_of, replacing
from clusterea.types import AlignmentTask, Benchmark, IntArray, KnowledgeGraph, Names, Pair

if TYPE_CHECKING:
    from torch import Tensor

VERSION = 2  # of the artifacts' form; part of every recipe
TENSORS = "tensors.safetensors"


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
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file; a run needs a folder.")
        self._clear_leftovers()

    def _clear_leftovers(self) -> None:
        """Removes what processes that were killed had begun."""
        for part in _listed(self.folder):
            ours = PART.search(part.name)
            if ours and not _is_running(int(ours["process"])):
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
        self.folder.mkdir(parents=True, exist_ok=True)
        beside = part_of(self.folder / key)
        beside.mkdir()
        try:
            yield beside
            (beside / "recipe.json").write_text(json.dumps(recipe, indent=1, sort_keys=True) + "\n")
            try:
                beside.rename(self.folder / key)
            except OSError:
                if self.find(key) is None:
                    raise
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def save_benchmark(self, benchmark: Benchmark) -> str:
        """The data as an artifact, so that later commands need the run's folder only; its key."""
        key = recipe_key("data", {"fingerprint": fingerprint(benchmark)}, {})
        if self.find(key) is None:
            with self.new(key, {"stage": "data", "format": benchmark.format}) as place:
                _write_benchmark(benchmark, place)
        self.point("data", key)
        return key

    def load_benchmark(self) -> Benchmark:
        """The data that the run works on."""
        place = self.folder / self.current("data")
        try:
            return _read_benchmark(place)
        except (OSError, pa.ArrowException, KeyError, DataError) as error:
            raise DataError(
                place,
                "is damaged, or not all there; delete the folder, and `align` or `train` with "
                "the same data make it again.",
            ) from error

    def point(self, stage: str, key: str) -> None:
        """Makes this artifact the one that later commands go on from."""
        write_json(self._pointer(stage), {"key": key})

    def current(self, stage: str) -> str:
        """The key of the artifact that was last made or used for a stage."""
        if not self._pointer(stage).is_file():
            raise DataError(
                self.folder, "expected a run, as `clusterea train` makes one; got none."
            )
        pointer = self._pointer(stage)
        try:
            return str(json.loads(pointer.read_text())["key"])
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                pointer, "is damaged; delete it, and the same command makes it again."
            ) from error

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
            write_tensors(place / TENSORS, tensors)
        return self.tensors_file(key)

    def tensors_file(self, key: str) -> Path:
        """The file with the tensors of the artifact `key`."""
        return self.folder / key / TENSORS


class FileCheckpoints:
    """Training's checkpoints in one file that is replaced whole.

    Five gigabytes after every epoch would take longer than the epochs: a state that comes sooner
    than its size allows is let go, so that writing takes a few percent of the time at most.
    """

    def __init__(self, path: Path, bytes_per_second: float = 25e6) -> None:
        self._path = path
        self._rate = bytes_per_second
        self._last = time.monotonic()

    def latest(self) -> Mapping[str, Tensor] | None:
        """The state that was saved last, if one was."""
        return read_tensors(self._path) if self._path.is_file() else None

    def save(self, state: Mapping[str, Tensor]) -> None:
        """Keeps a state in the place of the one before, unless that is too young."""
        size = sum(each.nbytes for each in state.values())
        if (time.monotonic() - self._last) * self._rate < size:
            return
        write_tensors(self._path, state)
        self._last = time.monotonic()

    def remove(self) -> None:
        """Once the result is there, nothing needs them."""
        self._path.unlink(missing_ok=True)


def task_key(task: AlignmentTask) -> str:
    """The key of a task as a parent: graphs, seeds and names' hashes, which is all a stage sees.

    Test links have no part in it, so that no artifact depends on them.
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


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Tensors as one safetensors file that is there whole or not at all."""
    from safetensors.torch import save_file

    contents = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    with replacing(path) as beside:
        beside.touch()
        mode = beside.stat().st_mode  # save_file's own file is for its owner alone
        save_file(contents, beside)
        beside.chmod(mode)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, on the host."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise DataError(path, f"is damaged ({error}); delete it to have it made again.") from error


def write_json(path: Path, value: Any) -> None:
    """JSON that is there whole or not at all."""
    with replacing(path) as beside:
        beside.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def _listed(folder: Path) -> list[Path]:
    """What is being written in a run's folder and in the folders there."""
    parts = list(folder.glob(".*.part"))
    for place in folder.glob("*/"):
        try:
            parts += place.glob(".*.part")
        except OSError:  # another run has just renamed or removed it
            continue
    return parts


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is someone else's
        return True
    return True


def _write_benchmark(benchmark: Benchmark, place: Path) -> None:
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
    write_tensors(place / TENSORS, {k: from_numpy(v.copy()) for k, v in arrays.items()})
    for kind, pair in (("entities", benchmark.names), ("relations", benchmark.relation_names)):
        for side, names in (("source", pair.source), ("target", pair.target)):
            pq.write_table(pa.table({"name": names.arrow}), place / f"{side}_{kind}.parquet")
    about = {
        "dropped": dict(benchmark.dropped),
        "format": benchmark.format,
        "seeds_from": dict(benchmark.seeds_from),
    }
    write_json(place / "about.json", about)


def _read_benchmark(place: Path) -> Benchmark:
    arrays = {k: v.numpy() for k, v in read_tensors(place / TENSORS).items()}

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
    about = json.loads((place / "about.json").read_text())
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
