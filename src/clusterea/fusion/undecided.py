"""The entities that are still to be matched: all but the seeds', in an order of their own."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clusterea.numerics.ties import mixed
from clusterea.types import IntArray, Pair

ROWS = 1 << 17  # moved to the device at a time


@dataclass(frozen=True, slots=True, eq=False)
class Undecided:
    """What the views of a fusion work on: vectors and keys by place, not by entity.

    Places follow the entities' keys. So sums are added in the same order however the entities
    are numbered, and the numbering shows in no digit of the result.
    """

    entities: Pair[Tensor]  # (places,) int64: the entity at each place
    vectors: Pair[Tensor]  # (places, dim) of unit length; float16 where a GPU works on them
    keys: Pair[Tensor]  # (places,) int64, what decides ties
    num_entities: Pair[int]

    @property
    def num_places(self) -> Pair[int]:
        return self.entities.map(len)


def undecided(
    embeddings: Pair[Tensor],
    seeds: IntArray | Tensor,
    keys: Pair[IntArray] | Pair[Tensor],
    seed: int,
    device: torch.device | None = None,
) -> Undecided:
    """The entities that no seed decides. Nobody says which of them have a counterpart.

    A GPU holds their vectors in float16, and every cosine is one of these: half of the memory, and
    products that differ from those of float32 by some 1e-5.
    """
    device = device or embeddings.source.device
    links = torch.asarray(seeds, dtype=torch.int64, device="cpu", copy=True).reshape(-1, 2)
    kind = torch.float16 if device.type == "cuda" else torch.float32

    def side(rows: Tensor, ends: Tensor, all_keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        is_free = torch.ones(len(rows), dtype=torch.bool)
        is_free[ends] = False
        free = is_free.nonzero().flatten()
        free = free[mixed(all_keys[free], seed).argsort()]
        vectors = torch.empty(len(free), rows.shape[1], dtype=kind, device=device)
        for start in range(0, len(free), ROWS):
            chosen = free[start : start + ROWS].to(rows.device)
            vectors[start : start + ROWS] = rows.index_select(0, chosen).to(device)
        return free, vectors, all_keys[free]

    of_entity = keys.map(lambda each: torch.asarray(each, dtype=torch.int64, copy=True))
    source = side(embeddings.source, links[:, 0], of_entity.source)
    target = side(embeddings.target, links[:, 1], of_entity.target)
    return Undecided(
        Pair(source[0], target[0]),
        Pair(source[1], target[1]),
        Pair(source[2], target[2]),
        embeddings.map(len),
    )
