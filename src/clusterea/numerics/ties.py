"""Ties: the order of equal scores. The entities' keys decide it, never their ids.

A key is a 64-bit hash of an entity's name (`Names.keys`). In public datasets ids carry the
alignment, so an order by id would be a leak.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.types import Pair

DIMENSIONS = 8  # of a tie vector: enough that no two pairs of one row share a product
# Of a tie vector beside a unit vector. Adds at most 3e-5 to a cosine: more than the rounding of
# float32, too little to matter otherwise. A power of two is exact in float16.
SCALE = 2**-9

# The multipliers of splitmix64, as signed numbers; products wrap around on every device alike.
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64
_STEP = 0x9E3779B97F4A7C15 - 2**64


def mixed(keys: Tensor, seed: int) -> Tensor:
    """(…,) int64: a hash of each key and the seed (splitmix64)."""
    values = keys + ((seed + 1) * _STEP + 2**63) % 2**64 - 2**63  # a tensor of it would wait
    values = (values ^ _shifted(values, 30)) * _FIRST
    values = (values ^ _shifted(values, 27)) * _SECOND
    return values ^ _shifted(values, 31)


def pair_hash(source_keys: Tensor, target_keys: Tensor, seed: int) -> Tensor:
    """(…,) int64: a hash of each pair of entities; of tied pairs, the larger hash comes first."""
    return mixed(mixed(source_keys, seed) ^ (mixed(target_keys, seed + 1) * _STEP), seed)


def tie_vectors(keys: Pair[Tensor], seed: int) -> Pair[Tensor]:
    """(n, DIMENSIONS) float32 in [-1, 1) for each side: their products order pairs that tie.

    The products replace `pair_hash` where a hash of each pair would be too slow: one matrix product
    computes them for a whole block, together with the cosines (`as_dimensions`). The two sides have
    different vectors for the same key, so entities of the same name are not more similar.
    """
    return Pair(_vectors(keys.source, seed + 2), _vectors(keys.target, seed + 2 + DIMENSIONS))


def as_dimensions(vectors: Tensor) -> Tensor:
    """Tie vectors scaled down, to be further dimensions of unit vectors."""
    return vectors * SCALE


def _vectors(keys: Tensor, seed: int) -> Tensor:
    bits = torch.stack([mixed(keys, seed + i) for i in range(DIMENSIONS)], dim=-1)
    return (bits >> 53).float() / 2**10  # 11 bits are all that float16 holds


def _shifted(values: Tensor, by: int) -> Tensor:
    """A logical shift to the right, which torch does not have for int64."""
    return (values >> by) & ((1 << (64 - by)) - 1)
