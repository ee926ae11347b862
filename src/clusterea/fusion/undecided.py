"""The entities that are still to be matched, and where their vectors come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from clusterea.numerics.copies import rows_on
from clusterea.numerics.products import vector_type
from clusterea.numerics.rows import Rows
from clusterea.numerics.ties import mixed
from clusterea.types import NO_ENTITIES, IntArray, Pair

ROWS_AT_ONCE = 1 << 15  # moved to the device at a time


@dataclass(frozen=True, slots=True, eq=False)
class VectorTable:
    """The vectors of one side, computed from those of the encoders when they are read."""

    tables: Sequence[Tensor]  # (entities, dim) of each encoder, those of content last
    shares: Sequence[float]  # the weight of each encoder's cosines
    device: torch.device
    num_contents: int = 0
    own: Tensor | None = None  # (entities, encoders of structure): weights that are not the same
    hidden: IntArray = field(default_factory=NO_ENTITIES.source.copy)  # without content

    @property
    def widths(self) -> list[int]:
        return [rows.shape[1] for rows in self.tables]

    def rows(self, entities: Tensor) -> Tensor:
        """(entities, sum of widths) on the device: float32, or float16 on a GPU."""
        kind = vector_type(self.device)
        vectors = torch.empty(len(entities), sum(self.widths), dtype=kind, device=self.device)
        parts = torch.split(vectors, self.widths, dim=1)
        of_structure = len(self.tables) - self.num_contents
        for encoder, (rows, part, share) in enumerate(
            zip(self.tables, parts, self.shares, strict=True)
        ):
            for some, copied in rows_on(self.device, rows, entities, ROWS_AT_ONCE):
                moved = copied.float()  # from either type
                if self.own is not None and share and encoder < of_structure:
                    own = self.own[entities[some].cpu(), encoder] / share
                    moved = moved * own.unsqueeze(1).to(moved)
                part[some] = moved if share == 1 else moved * share**0.5
        if len(self.hidden) and self.num_contents:
            at = torch.isin(entities, torch.tensor(self.hidden)).nonzero().flatten()
            vectors[at.to(self.device), sum(self.widths[:of_structure]) :] = 0
        return vectors


@dataclass(frozen=True, slots=True, eq=False)
class Undecided:
    """These entities have rows of their own: the arrays have a row for each, not for all entities.

    Rows are sorted by the entities' keys, or by lists and then by keys. So the order of sums, and
    with it the last digits of the result, do not depend on how the entities are numbered.
    """

    entities: Pair[Tensor]  # (rows,) int64: the entity of each row
    keys: Pair[Tensor]  # (rows,) int64, what decides ties
    tables: Pair[VectorTable]
    num_entities: Pair[int]
    vectors: Pair[Rows] | None = None  # (rows, dim), where a view compares them

    def in_order(self, order: Pair[Tensor]) -> Undecided:
        """The same rows in another order: (rows,) old numbers of each side."""
        entities, keys = (
            each.zip(order).map(lambda side: side[0][side[1]])
            for each in (self.entities, self.keys)
        )
        return replace(self, entities=entities, keys=keys)

    def read(self) -> Undecided:
        """The same with all vectors in memory."""
        found = self.tables.zip(self.entities).map(lambda side: Rows([side[0].rows(side[1])]))
        return replace(self, vectors=found)

    @property
    def num_rows(self) -> Pair[int]:
        return self.entities.map(len)


def undecided(
    encodings: Sequence[Pair[Tensor]],
    seeds: IntArray | Tensor,
    keys: Pair[IntArray] | Pair[Tensor],
    seed: int,
    device: torch.device | None = None,
    shares: Sequence[float] | None = None,
    of_source: Tensor | None = None,
    structural: Pair[IntArray] = NO_ENTITIES,
    contents: Sequence[Pair[Tensor]] = (),
    content_weights: Sequence[float] = (),
    hidden: Pair[IntArray] = NO_ENTITIES,
) -> Undecided:
    """The entities that may be linked and are in no seed.

    With several encoders, a vector has the rows of all encoders side by side, each scaled by the
    root of its share. So the product of two vectors is the weighted mean of their cosines. The rows
    of content encoders follow, likewise: their weighted cosines are added.

    A GPU holds the vectors in float16: half of the memory, and cosines that differ from those of
    float32 by about 1e-5.

    Args:
        encodings: (entities, dim) of each side, for each encoder.
        seeds: (n, 2): whose entities are left out.
        keys: (entities,) int64 of each side.
        seed: Of the order of rows.
        device: Where the vectors will be; that of the embeddings if not given.
        shares: The weights of the encoders, which sum to 1; equal if not given.
        of_source: (source entities, encoders): weights for each source entity, if not the same.
        structural: Entities that are never linked, left out too.
        contents: (entities, dim) of each side for each content encoder.
        content_weights: The weight of the cosines of each content encoder.
        hidden: Entities whose content vectors are taken as zeros.
    """
    every = [*encodings, *contents]
    device = device or every[0].source.device
    links = torch.asarray(seeds, dtype=torch.int64, device="cpu", copy=True).reshape(-1, 2)
    shares = [1 / len(encodings) for _ in encodings] if shares is None else list(shares)
    shares += content_weights
    if len(shares) != len(every):
        raise ValueError(f"shares must be one for each encoder. Got {len(shares)} instead.")
    sizes = every[0].map(len)
    of_entity = keys.map(lambda each: torch.asarray(each, dtype=torch.int64, copy=True))

    def free(size: int, ends: Tensor, never: IntArray, all_keys: Tensor) -> Tensor:
        is_free = torch.ones(size, dtype=torch.bool)
        is_free[ends] = False
        is_free[torch.tensor(never)] = False
        found = is_free.nonzero().flatten()
        return found[mixed(all_keys[found], seed).argsort()]

    entities = Pair(
        free(sizes.source, links[:, 0], structural.source, of_entity.source),
        free(sizes.target, links[:, 1], structural.target, of_entity.target),
    )
    source, target = [each.source for each in every], [each.target for each in every]
    count = len(contents)
    return Undecided(
        entities,
        of_entity.zip(entities).map(lambda side: side[0][side[1]]),
        Pair(
            VectorTable(source, shares, device, count, of_source, hidden.source),
            VectorTable(target, shares, device, count, None, hidden.target),
        ),
        sizes,
    )
