"""`Stored`: what can be kept in a run's folder; `Embeddings` and `Links`, which are kept so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from clusterea.types.pair import Pair

if TYPE_CHECKING:
    from torch import Tensor


class Stored(Protocol):
    """A value that says how it is stored: as named tensors, and back from them."""

    def tensors(self) -> dict[str, Tensor]: ...

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], num_entities: Pair[int]) -> Self:
        """The value.

        Args:
            tensors: What `tensors` returned, as read from a file.
            num_entities: Entities of each side of the task it was made for.

        Raises:
            ValueError, KeyError: It was not made for such a task.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Embeddings(Pair["Tensor"]):
    """(entities, dim) floating point of each side: the vectors of one encoder."""

    def tensors(self) -> dict[str, Tensor]:
        """How they are stored: see `Stored`."""
        return {"source": self.source, "target": self.target}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], num_entities: Pair[int]) -> Embeddings:
        found = cls(tensors["source"], tensors["target"])
        width = found.source.shape[-1]
        for rows, size in found.zip(num_entities):
            if rows.shape != (size, width) or not rows.is_floating_point():
                raise ValueError(
                    f"embeddings must have shape ({size}, {width}). Got {tuple(rows.shape)}."
                )
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Pairs of entities: seeds that a round adds."""

    pairs: Tensor  # (n, 2) int64: source entity, target entity

    def __len__(self) -> int:
        return len(self.pairs)

    def tensors(self) -> dict[str, Tensor]:
        """How they are stored: see `Stored`."""
        return {"links": self.pairs}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], num_entities: Pair[int]) -> Links:
        check_links(tensors["links"], num_entities)
        return cls(tensors["links"])


def check_ids(ids: Tensor, what: str, size: int) -> None:
    """Raises unless these are (n,) entities of a side with `size` entities."""
    from torch import int64

    if ids.ndim != 1 or ids.dtype != int64:
        raise ValueError(f"{what} must be int64 of shape (n,). Got {ids.dtype}, {ids.ndim}-d.")
    if ids.numel() and not (int(ids.min()) >= 0 and int(ids.max()) < size):
        raise ValueError(f"{what} must lie in [0, {size}).")


def check_links(links: Tensor, num_entities: Pair[int]) -> None:
    """Raises unless these are (n, 2) pairs of a source and a target entity."""
    if links.ndim != 2 or links.shape[1] != 2:
        raise ValueError(f"links must have shape (n, 2). Got {tuple(links.shape)} instead.")
    for column, size in enumerate(num_entities):
        check_ids(links[:, column], "links", size)
