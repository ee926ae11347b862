"""`Cells`: pairs to choose from, in one strict order that does not depend on entity ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor

from clusterea.numerics.ties import pair_hash
from clusterea.types import Pair


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Candidate pairs. Of two, the one with the higher score comes first, then the larger hash.

    Only names that share a 64-bit key can still tie; then the earlier cell comes first.
    """

    ends: Pair[Tensor]  # (cells,) int64: the source entity and the target entity of each
    values: Tensor  # (cells,) floating point
    keys: Pair[Tensor]  # (entities,) int64 of each side
    seed: int

    def __len__(self) -> int:
        return self.values.numel()

    def take(self, kept: Tensor) -> Cells:
        """The cells at these positions, or those of a mask."""
        at = kept.nonzero().flatten() if kept.dtype == torch.bool else kept
        ends = self.ends.map(lambda end: end.index_select(0, at))
        return Cells(ends, self.values.index_select(0, at), self.keys, self.seed)

    def hashes(self) -> Tensor:
        """(cells,) int64: hashes that order cells of the same score, the largest first."""
        source, target = self.ends.zip(self.keys).map(lambda side: side[1][side[0]])
        return pair_hash(source, target, self.seed)

    def order(self) -> Tensor:
        """(cells,): the positions of the cells in their order."""
        order = self.hashes().argsort(descending=True, stable=True)
        return order[self.values[order].argsort(descending=True, stable=True)]


class OpenCells(Protocol):
    """The cells of entities that may still be linked. They may be in parts, and elsewhere."""

    def __len__(self) -> int:
        """How many cells there are."""
        ...

    def num_sources(self) -> int:
        """How many source entities have a cell."""
        ...

    def firsts(self) -> Pair[Cells]:
        """The first cell of each source entity, and of each target entity, that has a cell."""
        ...

    def without(self, taken: Cells) -> Self:
        """The cells whose entities are in no cell of `taken`."""
        ...

    def whole(self) -> Cells:
        """All of them in memory."""
        ...


def joined(parts: Sequence[Cells]) -> Cells:
    """The cells of all parts, which have the same keys."""
    ends = Pair(
        torch.cat([part.ends.source for part in parts]),
        torch.cat([part.ends.target for part in parts]),
    )
    values = torch.cat([part.values for part in parts])
    return Cells(ends, values, parts[0].keys, parts[0].seed)
