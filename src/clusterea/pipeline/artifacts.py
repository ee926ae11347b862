"""What stages return, as artifacts and back; or just kept in memory, where there is no folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from clusterea.errors import DamagedError
from clusterea.types import Alignment, AlignmentTask, Pair, Partition, Similarity
from clusterea.workspace import Warn, Workspace, ignore, read_tensors, recipe_key

if TYPE_CHECKING:
    from torch import Tensor

    Tensors = Mapping[str, Tensor]

Value = TypeVar("Value")
COMMANDS = ("train", "sample", "fuse", "match")  # stages that have a command of their own


class Artifacts:
    """Finds a stage's result in a run's folder, or makes it and keeps it there.

    One that is damaged is made again; `warn` is told so.
    """

    def __init__(self, workspace: Workspace | None, warn: Warn = ignore) -> None:
        self.workspace = workspace
        self.warn = warn
        self.made: set[str] = set()  # keys of what was not there

    def has(self, key: str) -> bool:
        """Whether the artifact is there."""
        return self.workspace is not None and self.workspace.find(key) is not None

    def tensors(
        self,
        stage: str,
        recipe: Mapping[str, Any],
        parents: Mapping[str, str],
        make: Callable[[], Value],
        pack: Callable[[Value], Tensors],
        unpack: Callable[[Tensors], Value],
    ) -> tuple[str, Value]:
        """The key and the value of a stage: what `make` returns, or what it once did."""
        key = recipe_key(stage, recipe, parents)
        if self.workspace is not None and self.workspace.find(key) is not None:
            try:
                return key, read_artifact(self.workspace, key, unpack)
            except DamagedError as error:
                self.warn(f"{error.path} is damaged or missing: the stage {stage} is run again.")
                self.workspace.remove(key)
        value = make()
        self.made.add(key)
        if self.workspace is not None:
            described = {"stage": stage, "config": dict(recipe), "parents": dict(parents)}
            self.workspace.save_tensors(key, described, pack(value))
        return key, value


def read_artifact(workspace: Workspace, key: str, unpack: Callable[[Tensors], Value]) -> Value:
    """What a stage returned. An artifact that was damaged is named, with what to do."""
    path = workspace.tensors_file(key)
    try:
        workspace.recipe(key)
        return unpack(read_tensors(path, key))
    except FileNotFoundError as error:
        raise DamagedError(path, f"is missing; {_again(key)}") from error
    except DamagedError as error:
        raise DamagedError(error.path, f"is damaged; {_again(key)}") from error
    except (KeyError, ValueError, TypeError, RuntimeError, IndexError) as error:
        # The file is as it was written, but it was not written for this run's graphs.
        raise DamagedError(path, f"is damaged ({error}); {_again(key)}") from error


def _again(key: str) -> str:
    stage = key.partition("-")[0]
    which = f"`clusterea {stage}` or `align`" if stage in COMMANDS else "`clusterea align`"
    return f"run {which} again to have it made anew."


def entity_counts(task: AlignmentTask) -> Pair[int]:
    """How many entities each side has, which bounds what an artifact may hold."""
    return task.graphs.map(lambda graph: graph.num_entities)


def _check_ids(ids: Tensor, what: str, size: int) -> None:
    """Raises unless these are (n,) entities of a side."""
    from torch import int64

    if ids.ndim != 1 or ids.dtype != int64:
        raise ValueError(f"{what} must be int64 of shape (n,). Got {ids.dtype}, {ids.ndim}-d.")
    if ids.numel() and not (int(ids.min()) >= 0 and int(ids.max()) < size):
        raise ValueError(f"{what} must lie in [0, {size}).")


def _check_links(links: Tensor, sizes: Pair[int]) -> None:
    if links.ndim != 2 or links.shape[1] != 2:
        raise ValueError(f"links must have shape (n, 2). Got {tuple(links.shape)} instead.")
    for column, size in enumerate(sizes):
        _check_ids(links[:, column], "links", size)


def pack_pair(pair: Pair[Tensor]) -> Tensors:
    """Embeddings."""
    return {"source": pair.source, "target": pair.target}


def unpack_pair(tensors: Tensors, sizes: Pair[int]) -> Pair[Tensor]:
    """Embeddings: a row of floating point for each entity, of one width."""
    pair = Pair(tensors["source"], tensors["target"])
    width = pair.source.shape[-1]
    for rows, size in pair.zip(sizes):
        if rows.shape != (size, width) or not rows.is_floating_point():
            raise ValueError(
                f"embeddings must have shape ({size}, {width}). Got {tuple(rows.shape)} instead."
            )
    return pair


def pack_links(links: Tensor) -> Tensors:
    """Pairs of entities."""
    return {"links": links}


def unpack_links(tensors: Tensors, sizes: Pair[int]) -> Tensor:
    """Pairs of entities."""
    _check_links(tensors["links"], sizes)
    return tensors["links"]


def pack_partition(partition: Partition) -> Tensors:
    """Labels, and how many mini-batches."""
    from torch import tensor

    return {**pack_pair(partition.labels), "num_batches": tensor([partition.num_batches])}


def unpack_partition(tensors: Tensors, sizes: Pair[int]) -> Partition:
    """A partition from its labels."""
    labels = Pair(tensors["source"], tensors["target"])
    for side, size in labels.zip(sizes):
        if len(side) != size:
            raise ValueError(f"labels must be one for each entity. Got {len(side)} for {size}.")
    return Partition(labels, int(tensors["num_batches"]))


def pack_similarity(similarity: Similarity) -> Tensors:
    """CSR, with columns of 32 bits where they fit: half of what is written."""
    from torch import int32, tensor

    columns = similarity.columns
    return {
        "row_offsets": similarity.row_offsets,
        "columns": columns.to(int32) if similarity.num_entities.target < 2**31 else columns,
        "values": similarity.values,
        "num_entities": tensor(list(similarity.num_entities)),
    }


def unpack_similarity(tensors: Tensors, sizes: Pair[int]) -> Similarity:
    """A similarity from its CSR arrays."""
    if tensors["num_entities"].tolist() != list(sizes):
        raise ValueError(f"a similarity must be of {sizes.source} and {sizes.target} entities.")
    return Similarity(
        tensors["row_offsets"],
        tensors["columns"].long(),
        tensors["values"],
        Pair(*tensors["num_entities"].tolist()),
    )


def pack_alignment(alignment: Alignment) -> Tensors:
    """Links, confidences, who has none, and what the confidences were fitted on."""
    from torch import tensor

    return {
        "links": alignment.links,
        "confidence": alignment.confidence,
        "unmatched_source": alignment.unmatched.source,
        "unmatched_target": alignment.unmatched.target,
        "examples": tensor([alignment.examples]),
    }


def unpack_alignment(tensors: Tensors, sizes: Pair[int]) -> Alignment:
    """An alignment from its arrays."""
    _check_links(tensors["links"], sizes)
    _check_ids(tensors["unmatched_source"], "unmatched entities", sizes.source)
    _check_ids(tensors["unmatched_target"], "unmatched entities", sizes.target)
    return Alignment(
        tensors["links"],
        tensors["confidence"],
        Pair(tensors["unmatched_source"], tensors["unmatched_target"]),
        int(tensors["examples"]),
    )
