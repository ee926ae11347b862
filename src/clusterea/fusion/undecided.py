"""The entities that are still to be matched, with their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from clusterea.numerics.cells import from_cells
from clusterea.numerics.ties import mixed
from clusterea.types import NO_ENTITIES, IntArray, Pair, Similarity

ROWS_AT_ONCE = 1 << 17  # moved to the device at a time


@dataclass(frozen=True, slots=True, eq=False)
class Undecided:
    """The working copy of these entities: the arrays have a row for each, not for all entities.

    Rows are sorted by the entities' keys. So the order of sums, and with it the last digits of the
    result, do not depend on how the entities are numbered.
    """

    entities: Pair[Tensor]  # (rows,) int64: the entity of each row
    vectors: Pair[Tensor]  # (rows, dim) of length 1 at most; float16 where a GPU works on them
    keys: Pair[Tensor]  # (rows,) int64, what decides ties
    num_entities: Pair[int]
    content_widths: tuple[int, ...] = ()  # the last dimensions of the vectors: of each content

    def contents(self) -> list[Pair[Tensor]]:
        """The part of the vectors that belongs to each content encoder, scaled."""
        start = self.vectors.source.shape[1] - sum(self.content_widths)
        source, target = (
            torch.split(side[:, start:], list(self.content_widths), dim=1) for side in self.vectors
        )
        return [Pair(*both) for both in zip(source, target, strict=True)]

    def without_vectors(self) -> Undecided:
        """The same entities without vectors, to free memory."""
        return replace(
            self, vectors=self.vectors.map(lambda side: side.new_empty(0, side.shape[1]))
        )

    def by_entity(self, similarity: Similarity) -> Similarity:
        """A matrix over these rows as a matrix over entities."""
        rows, columns = self.entities.zip(Pair(similarity.rows(), similarity.columns)).map(
            lambda side: side[0].to(side[1].device)[side[1]]
        )
        return from_cells(rows, columns, similarity.values, self.num_entities)

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
    kind = torch.float16 if device.type == "cuda" else torch.float32

    shares = [1 / len(encodings) for _ in encodings] if shares is None else list(shares)
    shares += content_weights
    widths_of_contents = tuple(each.source.shape[1] for each in contents)

    def side(
        tables: list[Tensor],
        ends: Tensor,
        never: IntArray,
        all_keys: Tensor,
        own: Tensor | None,
        unseen: IntArray,
    ) -> tuple[Tensor, Tensor, Tensor]:
        is_free = torch.ones(len(tables[0]), dtype=torch.bool)
        is_free[ends] = False
        is_free[torch.tensor(never)] = False
        free = is_free.nonzero().flatten()
        free = free[mixed(all_keys[free], seed).argsort()]
        widths = [rows.shape[1] for rows in tables]
        vectors = torch.empty(len(free), sum(widths), dtype=kind, device=device)
        parts = torch.split(vectors, widths, dim=1)
        for encoder, (rows, part, share) in enumerate(zip(tables, parts, shares, strict=True)):
            for start in range(0, len(free), ROWS_AT_ONCE):
                chosen = free[start : start + ROWS_AT_ONCE].to(rows.device)
                moved = rows.index_select(0, chosen).to(device)
                if own is not None and share and encoder < len(encodings):
                    moved = moved * (own[chosen.cpu(), encoder] / share).unsqueeze(1).to(moved)
                part[start : start + ROWS_AT_ONCE] = moved if share == 1 else moved * share**0.5
        if len(unseen) and contents:
            at = torch.isin(free, torch.tensor(unseen)).nonzero().flatten().to(device)
            vectors[at, -sum(widths_of_contents) :] = 0
        return free, vectors, all_keys[free]

    of_entity = keys.map(lambda each: torch.asarray(each, dtype=torch.int64, copy=True))
    source = side(
        [each.source for each in every],
        links[:, 0],
        structural.source,
        of_entity.source,
        of_source,
        hidden.source,
    )
    target = side(
        [each.target for each in every],
        links[:, 1],
        structural.target,
        of_entity.target,
        None,
        hidden.target,
    )
    return Undecided(
        Pair(source[0], target[0]),
        Pair(source[1], target[1]),
        Pair(source[2], target[2]),
        every[0].map(len),
        widths_of_contents,
    )
