"""The entities that are still to be matched, in an order of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from clusterea.numerics.cells import from_cells
from clusterea.numerics.ties import mixed
from clusterea.types import NO_ENTITIES, IntArray, Pair, Similarity

ROWS = 1 << 17  # moved to the device at a time


@dataclass(frozen=True, slots=True, eq=False)
class Undecided:
    """What the views of a fusion work on: vectors and keys by place, not by entity.

    Places follow the entities' keys. So sums are added in the same order however the entities
    are numbered, and the numbering shows in no digit of the result.
    """

    entities: Pair[Tensor]  # (places,) int64: the entity at each place
    vectors: Pair[Tensor]  # (places, dim) of length 1 at most; float16 where a GPU works on them
    keys: Pair[Tensor]  # (places,) int64, what decides ties
    num_entities: Pair[int]

    def without_vectors(self) -> Undecided:
        """The same entities, when nothing is to be compared any more."""
        return replace(
            self, vectors=self.vectors.map(lambda side: side.new_empty(0, side.shape[1]))
        )

    def by_entity(self, similarity: Similarity) -> Similarity:
        """A matrix of places as one of entities."""
        places = Pair(similarity.rows(), similarity.columns)
        rows, columns = self.entities.zip(places).map(
            lambda side: side[0].to(side[1].device)[side[1]]
        )
        return from_cells(rows, columns, similarity.values, self.num_entities)

    @property
    def num_places(self) -> Pair[int]:
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
) -> Undecided:
    """The entities that may be linked and are in no seed.

    Which of them have a counterpart is unknown. `structural` entities are never linked, so they
    are left out like those of the seeds.

    Where there are several encoders, a product of two vectors is the mean of their cosines,
    weighted by their shares: the working copy has the rows of all side by side, each scaled by the
    root of its share. `of_source`, (source entities, encoders), has shares of their own for source
    entities: a product is then weighted by its row's.

    A GPU holds the vectors in float16, and every cosine is one of these: half of the memory, and
    products that differ from those of float32 by some 1e-5.
    """
    device = device or encodings[0].source.device
    links = torch.asarray(seeds, dtype=torch.int64, device="cpu", copy=True).reshape(-1, 2)
    kind = torch.float16 if device.type == "cuda" else torch.float32

    shares = shares or [1 / len(encodings)] * len(encodings)

    def side(
        tables: list[Tensor],
        ends: Tensor,
        never: IntArray,
        all_keys: Tensor,
        own: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        is_free = torch.ones(len(tables[0]), dtype=torch.bool)
        is_free[ends] = False
        is_free[torch.tensor(never)] = False
        free = is_free.nonzero().flatten()
        free = free[mixed(all_keys[free], seed).argsort()]
        widths = [rows.shape[1] for rows in tables]
        vectors = torch.empty(len(free), sum(widths), dtype=kind, device=device)
        parts = torch.split(vectors, widths, dim=1)
        for at, (rows, part, share) in enumerate(zip(tables, parts, shares, strict=True)):
            for start in range(0, len(free), ROWS):
                chosen = free[start : start + ROWS].to(rows.device)
                moved = rows.index_select(0, chosen).to(device)
                if own is not None and share:
                    moved = moved * (own[chosen.cpu(), at] / share).unsqueeze(1).to(moved)
                part[start : start + ROWS] = moved if share == 1 else moved * share**0.5
        return free, vectors, all_keys[free]

    of_entity = keys.map(lambda each: torch.asarray(each, dtype=torch.int64, copy=True))
    source = side(
        [each.source for each in encodings],
        links[:, 0],
        structural.source,
        of_entity.source,
        of_source,
    )
    target = side(
        [each.target for each in encodings], links[:, 1], structural.target, of_entity.target, None
    )
    return Undecided(
        Pair(source[0], target[0]),
        Pair(source[1], target[1]),
        Pair(source[2], target[2]),
        encodings[0].map(len),
    )
