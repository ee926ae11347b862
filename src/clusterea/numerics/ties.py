"""Ties: which of two equal scores comes first, decided by the entities' keys, never by their ids.

A key is a 64-bit hash of an entity's name (`Names.keys`). In public datasets ids carry the
alignment, so an order by id would be a leak.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.types import Pair

DIMENSIONS = 8  # of a tie vector: enough that no two pairs of one row share a product
SCALE = 2**-9  # of a tie vector beside a unit vector: adds 3e-5 to a cosine at most, far above
# float32's rounding and far below a step; a power of two, so that float16 holds it exactly

# The multipliers of splitmix64, as signed numbers; products wrap around on every device alike.
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64
_STEP = 0x9E3779B97F4A7C15 - 2**64


def mixed(keys: Tensor, seed: int) -> Tensor:
    """(…,) int64: other numbers for another seed, spread over all 64 bits (splitmix64)."""
    values = keys + torch.tensor(seed + 1, device=keys.device) * _STEP
    values = (values ^ _shifted(values, 30)) * _FIRST
    values = (values ^ _shifted(values, 27)) * _SECOND
    return values ^ _shifted(values, 31)


def pair_hash(source_keys: Tensor, target_keys: Tensor, seed: int) -> Tensor:
    """(…,) int64: a number for each pair of entities; of tied pairs the larger one comes first."""
    return mixed(mixed(source_keys, seed) ^ (mixed(target_keys, seed + 1) * _STEP), seed)


def tie_vectors(keys: Pair[Tensor], seed: int) -> Pair[Tensor]:
    """(n, DIMENSIONS) float32 in [-1, 1) for each side: their products order pairs that tie.

    The product is what `pair_hash` is, for where one number for each pair is too dear: a matrix
    product gives it for a whole block. Scaled down, it can ride along in the similarity's own.
    Each side has other vectors for the same key: two entities of one name must not attract.
    """
    return Pair(_vectors(keys.source, seed + 2), _vectors(keys.target, seed + 2 + DIMENSIONS))


def as_dimensions(vectors: Tensor) -> Tensor:
    """Tie vectors so small that they can be further dimensions of unit vectors."""
    return vectors * SCALE


def _vectors(keys: Tensor, seed: int) -> Tensor:
    bits = torch.stack([mixed(keys, seed + i) for i in range(DIMENSIONS)], dim=-1)
    return (bits >> 53).float() / 2**10  # 11 bits are all that float16 holds


def _shifted(values: Tensor, by: int) -> Tensor:
    """A shift to the right that brings in zeros: torch has none for int64."""
    return (values >> by) & ((1 << (64 - by)) - 1)
