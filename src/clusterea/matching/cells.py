"""`Cells`: pairs to choose from, in one strict order that does not depend on entity ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from clusterea.numerics.cells import without
from clusterea.numerics.ties import pair_hash
from clusterea.types import Pair, Similarity

_LOWEST = torch.iinfo(torch.int64).min


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

    def num_sources(self) -> int:
        """How many source entities have a cell."""
        seen = torch.zeros_like(self.keys.source, dtype=torch.bool)
        seen[self.ends.source] = True
        return int(seen.sum())

    def take(self, kept: Tensor) -> Cells:
        """The cells at these positions, or those of a mask."""
        at = kept.nonzero().flatten() if kept.dtype == torch.bool else kept
        ends = self.ends.map(lambda end: end.index_select(0, at))
        return Cells(ends, self.values.index_select(0, at), self.keys, self.seed)

    def without(self, taken: Cells) -> Cells:
        """The cells whose entities are in no cell of `taken`."""
        free = self.keys.map(lambda keys: torch.ones_like(keys, dtype=torch.bool))
        free.source[taken.ends.source] = False
        free.target[taken.ends.target] = False
        return self.take(free.source[self.ends.source] & free.target[self.ends.target])

    def hashes(self) -> Tensor:
        """(cells,) int64: hashes that order cells of the same score, the largest first."""
        source, target = self.ends.zip(self.keys).map(lambda side: side[1][side[0]])
        return pair_hash(source, target, self.seed)

    def order(self) -> Tensor:
        """(cells,): the positions of the cells in their order."""
        order = self.hashes().argsort(descending=True, stable=True)
        return order[self.values[order].argsort(descending=True, stable=True)]

    def firsts(self) -> Pair[Tensor]:
        """(entities,) of each side: the position of each entity's first cell; -1 for none."""
        return self.ends.zip(self.keys).map(lambda side: self._firsts(side[0], side[1].numel()))

    def _firsts(self, owners: Tensor, entities: int) -> Tensor:
        highest = self.values.new_full((entities,), -torch.inf)
        highest.scatter_reduce_(0, owners, self.values, "amax")
        # Hashes are computed only for cells with their entity's highest score, which are few.
        at = (self.values == highest.index_select(0, owners)).nonzero().flatten()
        owners, hashes = owners[at], self.take(at).hashes()
        largest = hashes.new_full((entities,), _LOWEST)
        largest.scatter_reduce_(0, owners, hashes, "amax")
        last = hashes == largest[owners]
        firsts = at.new_full((entities,), len(self))
        firsts.scatter_reduce_(0, owners[last], at[last], "amin")
        return firsts.masked_fill_(firsts == len(self), -1)


def joined(parts: Sequence[Cells]) -> Cells:
    """The cells of all parts, which have the same keys."""
    ends = Pair(
        torch.cat([part.ends.source for part in parts]),
        torch.cat([part.ends.target for part in parts]),
    )
    values = torch.cat([part.values for part in parts])
    return Cells(ends, values, parts[0].keys, parts[0].seed)


def open_cells(
    similarity: Similarity, ties: Pair[Tensor], decided: Pair[Tensor], seed: int
) -> Cells:
    """The cells of undecided entities.

    Args:
        similarity: Scores of source × target.
        ties: (entities,) int64 of each side.
        decided: (n,) of each side: entities whose rows and columns are left out.
        seed: Of the hashes.
    """
    device, sizes = similarity.values.device, similarity.num_entities
    if ties.map(lambda keys: keys.numel()) != sizes:
        raise ValueError(
            f"ties must be a key for each of {sizes.source} and {sizes.target} entities. "
            f"Got {ties.source.numel()} and {ties.target.numel()} instead."
        )
    similarity = without(similarity, decided.source, decided.target)
    # A CPU has no reductions in half precision. The conversion to float32 is exact.
    values = similarity.values.to(torch.promote_types(similarity.values.dtype, torch.float32))
    ends = Pair(similarity.rows(), similarity.columns)
    return Cells(ends, values, ties.map(lambda keys: keys.to(device)), seed)
