"""`ShardedCells`: the cells that links are chosen from, in shards of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from clusterea.engines import Engine, Ref
from clusterea.matching.cell_rows import CellRows
from clusterea.matching.cells import Cells, joined
from clusterea.matching.firsts import FirstOfColumns, Firsts
from clusterea.numerics.cells import Entries
from clusterea.sharded.scores import HeldScores
from clusterea.sharded.shards import Shards, results_of
from clusterea.types import Pair


@dataclass(frozen=True, eq=False)
class ShardedCells:
    """`matching.OpenCells` whose cells an engine holds. What is here has the size of entities."""

    engine: Engine
    shards: Shards  # of `CellRows`, which have these cells and maybe others
    is_open: Pair[Tensor]  # (entities,) bool of each side: those with these cells
    nothing: Cells  # with the keys
    held: Pair[Ref]  # the keys
    drops: bool = False  # whether the shards of all that follows have only what is left

    @classmethod
    def of(
        cls, scores: HeldScores, ties: Pair[Tensor], decided: Pair[Tensor], seed: int
    ) -> ShardedCells:
        """The cells of undecided entities.

        Args:
            scores: All cells.
            ties: (entities,) int64 of each side: they decide between equal scores.
            decided: (n,) of each side: entities whose rows and columns are left out.
            seed: Of the order of ties.
        """
        device, sizes = scores.nothing.device, scores.num_entities
        if ties.map(lambda keys: keys.numel()) != sizes:
            raise ValueError(
                f"ties must be a key for each of {sizes.source} and {sizes.target} entities. "
                f"Got {ties.source.numel()} and {ties.target.numel()} instead."
            )
        keys = ties.map(lambda side: side.to(device))
        is_open = sizes.map(lambda size: torch.ones(size, dtype=torch.bool, device=device))
        for mask, entities in is_open.zip(decided):
            mask[entities.to(device)] = False
        none = torch.empty(0, dtype=torch.int64, device=device)
        nothing = Cells(Pair(none, none), scores.nothing, keys, seed)
        held = keys.map(scores.engine.put)
        return cls(scores.engine, scores.shards, is_open, nothing, held)

    def __len__(self) -> int:
        return self._seen.count

    def num_sources(self) -> int:
        return len(self.firsts().source)

    def firsts(self) -> Pair[Cells]:
        return self._seen.firsts

    def without(self, taken: Cells) -> ShardedCells:
        is_open = self.is_open.map(Tensor.clone)
        for mask, entities in is_open.zip(taken.ends):
            mask[entities] = False
        return replace(self, shards=self._seen.rest, is_open=is_open, drops=True)

    def whole(self) -> Cells:
        masks = self.shards.masks(self.engine, self.is_open)
        arguments = zip(self.shards.refs, masks, strict=True)
        found = results_of(self.engine, CellRows.only, arguments)
        return joined([self.nothing, *(self._cells(each.entries()) for each in found)])

    @cached_property
    def _seen(self) -> _Seen:
        """What the units found, put together."""
        keys, seed = self.nothing.keys, self.nothing.seed
        rest = Shards(self.shards.bounds, [])
        looks = self._looks(rest)
        count, of_rows = 0, [self.nothing]
        of_columns = FirstOfColumns.none(self.nothing.values, keys.target.numel())
        for ref in looks if self.engine.is_here else list(looks):
            found: Firsts = self.engine.get([ref])[0]
            count += found.count
            of_rows.append(self._cells(found.firsts.source))
            of_columns.add(found.firsts.target, keys, seed)
        firsts = Pair(joined(of_rows), self._cells(of_columns.cells()))
        return _Seen(count, firsts, rest)

    def _looks(self, rest: Shards) -> Iterator[Ref]:
        """The `Firsts` of each shard; adds what is left of it to `rest`."""
        masks = self.shards.masks(self.engine, self.is_open)
        for ref, mask in zip(self.shards.refs, masks, strict=True):
            arguments = ref, mask, self.held, self.nothing.seed
            if self.drops:
                left, found = self.engine.submit_parts(2, Firsts.of_rest, *arguments)
            else:
                left, found = ref, self.engine.submit(Firsts.of, *arguments)
            rest.refs.append(left)
            yield found

    def _cells(self, entries: Entries) -> Cells:
        rows, columns, values = entries
        kind = self.nothing.values
        return replace(self.nothing, ends=Pair(rows, columns), values=values.to(kind))


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """What the units of one round found."""

    count: int  # cells
    firsts: Pair[Cells]
    rest: Shards  # of `CellRows`
