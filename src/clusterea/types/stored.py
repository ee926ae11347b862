"""`Stored`: values that a run's folder can store, such as `Embeddings` and `Links`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from clusterea.types.pair import Pair

if TYPE_CHECKING:
    from torch import Tensor


class Stored(Protocol):
    """A value that converts to named tensors and back."""

    def tensors(self) -> dict[str, Tensor]: ...

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], num_entities: Pair[int]) -> Self:
        """The value from its tensors.

        Args:
            tensors: The result of `tensors`, read from a file.
            num_entities: The number of entities of each side.

        Raises:
            ValueError, KeyError: The tensors do not fit these numbers.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Embeddings(Pair["Tensor"]):
    """The vectors of one encoder: (entities, dim) floating point for each side."""

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
    """Pairs of entities, such as pseudo-seeds."""

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
    """Raises unless these are (n,) ids in [0, size)."""
    from torch import int64

    if ids.ndim != 1 or ids.dtype != int64:
        raise ValueError(f"{what} must be int64 of shape (n,). Got {ids.dtype}, {ids.ndim}-d.")
    if ids.numel() and not (int(ids.min()) >= 0 and int(ids.max()) < size):
        raise ValueError(f"{what} must lie in [0, {size}).")


def check_links(links: Tensor, num_entities: Pair[int]) -> None:
    """Raises unless these are (n, 2) ids of source and target entities."""
    if links.ndim != 2 or links.shape[1] != 2:
        raise ValueError(f"links must have shape (n, 2). Got {tuple(links.shape)} instead.")
    for column, size in enumerate(num_entities):
        check_ids(links[:, column], "links", size)
