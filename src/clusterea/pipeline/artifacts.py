"""What stages return, as artifacts and back; or just kept in memory, where there is no folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from clusterea.errors import DataError
from clusterea.types import Alignment, Pair, Partition, Similarity
from clusterea.workspace import Workspace, read_tensors, recipe_key

if TYPE_CHECKING:
    from torch import Tensor

    Tensors = Mapping[str, Tensor]

Value = TypeVar("Value")


class Artifacts:
    """Finds a stage's result in a run's folder, or makes it and keeps it there."""

    def __init__(self, workspace: Workspace | None) -> None:
        self.workspace = workspace
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
            return key, unpack(read_artifact(self.workspace, key))
        value = make()
        self.made.add(key)
        if self.workspace is not None:
            described = {"stage": stage, "config": dict(recipe), "parents": dict(parents)}
            self.workspace.save_tensors(key, described, pack(value))
        return key, value


def read_artifact(workspace: Workspace, key: str) -> Tensors:
    """The tensors of an artifact. One that something else damaged is named, with what to do."""
    path = workspace.tensors_file(key)
    try:
        return read_tensors(path)
    except (DataError, FileNotFoundError) as error:
        problem = "is damaged" if isinstance(error, DataError) else "is missing"
        if workspace.find(key) is not None:
            problem += f"; delete the folder {path.parent}"
        again = f"`clusterea {key.partition('-')[0]}` or `align`"
        raise DataError(path, f"{problem}; run {again} again to have it made anew.") from error


def pack_pair(pair: Pair[Tensor]) -> Tensors:
    """Embeddings."""
    return {"source": pair.source, "target": pair.target}


def unpack_pair(tensors: Tensors) -> Pair[Tensor]:
    """Embeddings."""
    return Pair(tensors["source"], tensors["target"])


def pack_links(links: Tensor) -> Tensors:
    """Pairs of entities."""
    return {"links": links}


def unpack_links(tensors: Tensors) -> Tensor:
    """Pairs of entities."""
    return tensors["links"]


def pack_partition(partition: Partition) -> Tensors:
    """Labels, and how many mini-batches."""
    from torch import tensor

    return {**pack_pair(partition.labels), "num_batches": tensor([partition.num_batches])}


def unpack_partition(tensors: Tensors) -> Partition:
    """A partition from its labels."""
    return Partition(unpack_pair(tensors), int(tensors["num_batches"]))


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


def unpack_similarity(tensors: Tensors) -> Similarity:
    """A similarity from its CSR arrays."""
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


def unpack_alignment(tensors: Tensors) -> Alignment:
    """An alignment from its arrays."""
    return Alignment(
        tensors["links"],
        tensors["confidence"],
        Pair(tensors["unmatched_source"], tensors["unmatched_target"]),
        int(tensors["examples"]) if "examples" in tensors else 0,  # older runs have none
    )
