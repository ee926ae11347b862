"""`Partition`: the mini-batch of each entity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusterea.types.arrays import check_count
from clusterea.types.pair import Pair

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Partition:
    """The mini-batch of every entity of both sides."""

    labels: Pair[Tensor]  # (entities of the side,) int64: the entity's mini-batch
    num_batches: int

    def __post_init__(self) -> None:
        check_count(self.num_batches, "num_batches", least=1)
        for side, labels in (("source", self.labels.source), ("target", self.labels.target)):
            if labels.ndim != 1 or labels.is_floating_point() or labels.is_complex():
                raise ValueError(
                    f"{side} labels must be integers of shape (n,). "
                    f"Got {labels.dtype} of shape {tuple(labels.shape)} instead."
                )
            if labels.numel() and not (
                int(labels.min()) >= 0 and int(labels.max()) < self.num_batches
            ):
                raise ValueError(
                    f"{side} labels must lie in [0, {self.num_batches}). "
                    f"Got values from {int(labels.min())} to {int(labels.max())} instead."
                )

    def mini_batches(self) -> Iterator[Pair[Tensor]]:
        """The entity ids of each mini-batch, ascending; mini-batches may be empty."""
        yield from (
            Pair(source, target)
            for source, target in zip(
                *self.labels.map(lambda labels: _groups(labels, self.num_batches)), strict=True
            )
        )

    def sizes(self) -> Pair[list[int]]:
        """The number of entities in each mini-batch."""
        return self.labels.map(lambda labels: labels.bincount(minlength=self.num_batches).tolist())

    def swap(self) -> Partition:
        """The same mini-batches with source and target exchanged."""
        return Partition(self.labels.swap(), self.num_batches)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors to store, see `Stored`."""
        from torch import tensor

        source, target = self.labels
        return {"source": source, "target": target, "num_batches": tensor([self.num_batches])}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], num_entities: Pair[int]) -> Partition:
        labels = Pair(tensors["source"], tensors["target"])
        for side, size in labels.zip(num_entities):
            if len(side) != size:
                raise ValueError(f"labels must be one for each entity. Got {len(side)} for {size}.")
        return cls(labels, int(tensors["num_batches"]))

    def __repr__(self) -> str:
        source, target = self.labels
        largest = self.sizes().map(max)
        return (
            f"Partition({self.num_batches:,} mini-batches of {source.numel():,} and "
            f"{target.numel():,} entities, the largest {largest.source:,} × {largest.target:,})"
        )


def _groups(labels: Tensor, num_batches: int) -> tuple[Tensor, ...]:
    """The positions of each label, ascending."""
    import torch

    order = labels.argsort(stable=True)
    return torch.split(order, labels.bincount(minlength=num_batches).tolist())
