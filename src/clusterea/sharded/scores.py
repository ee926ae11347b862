"""`HeldScores`: a similarity whose rows an engine holds in shards, to match entities by it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clusterea.engines import Engine, InMemory
from clusterea.matching.cell_rows import CellRows
from clusterea.matching.compared import BestTwo, Compared, ComparedRows
from clusterea.sharded.shards import Shards, cut, results_of
from clusterea.types import NO_LINKS, IntArray, Pair, Similarity


@dataclass(frozen=True, slots=True, eq=False)
class HeldScores:
    """The cells of a similarity in shards of rows. Each shard goes to the engine once."""

    engine: Engine
    shards: Shards  # of `CellRows`
    num_entities: Pair[int]
    nothing: Tensor  # (0,): of the type and device of values, of single precision at least

    @classmethod
    def of(
        cls, similarity: Similarity, engine: Engine | None = None, rejected: IntArray = NO_LINKS
    ) -> HeldScores:
        """The cells of the similarity without those of (n, 2) rejected pairs.

        An engine that works in this process reads the similarity where it is.
        """
        engine = engine or InMemory()
        sizes, values = similarity.num_entities, similarity.values
        shards = Shards(cut(sizes.source, engine), [])
        wrong = torch.tensor(rejected, device=values.device)
        for start, stop in shards.ranges():
            rows = CellRows.of(similarity, start, stop)
            if len(wrong):
                shards.refs.append(engine.submit(CellRows.without, rows, wrong))
            else:
                shards.refs.append(rows if engine.is_here else engine.put(rows))
        kind = torch.promote_types(values.dtype, torch.float32)
        return cls(engine, shards, sizes, values[:0].to(kind))

    def compared(self, links: Tensor, is_open: Pair[Tensor] | None = None) -> Compared:
        """The scores of these (n, 2) links and of their rivals.

        Args:
            links: Source entity, target entity.
            is_open: (entities,) bool of each side: only cells between open entities count.
        """
        links = links.to(self.nothing.device)
        width = self.num_entities.target
        least = self.nothing.new_full((), torch.inf)
        score, row = (self.nothing.new_zeros(len(links)) for _ in range(2))
        is_cell = torch.zeros(len(links), dtype=torch.bool, device=links.device)
        columns = BestTwo.none(self.nothing, width)
        shard_of = torch.bucketize(
            links[:, 0].contiguous(),
            torch.tensor(self.shards.bounds[1:-1], device=links.device),
            right=True,
        )
        places = [(shard_of == number).nonzero().flatten() for number in range(len(self.shards))]
        masks = self.shards.masks(self.engine, is_open)
        arguments = (
            (ref, mask, links[at], width)
            for ref, mask, at in zip(self.shards.refs, masks, places, strict=True)
        )
        found = results_of(self.engine, ComparedRows.of, arguments)
        for at, part in zip(places, found, strict=True):
            least = torch.minimum(least, part.least)
            score[at], row[at], is_cell[at] = part.score, part.row, part.is_cell
            columns.add(part.columns, part.best)
        column = columns.rivals(links[:, 1], score, is_cell)
        lowest = torch.where(least.isfinite(), least, 0)
        return Compared(torch.where(is_cell, score, lowest), row, column, least)
