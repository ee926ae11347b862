"""Pairs of entities that equal names suggest."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clusterea.types import IntArray, Pair, Texts


def equal_names(names: Pair[Texts], never: Pair[NDArray[np.bool_]]) -> IntArray:
    """(n, 2): the pairs that share a name which no other entity of either side has; one-to-one.

    An entity whose names lead to several others is left out.

    Args:
        names: Normalized names.
        never: (entities,) of each side: entities that are left out.
    """
    texts, owners = zip(*(_unique(*side) for side in names.zip(never)), strict=True)
    at = pc.index_in(texts[0], value_set=texts[1])
    found = pc.is_valid(at).to_numpy(zero_copy_only=False)
    target = owners[1][pc.drop_null(at).to_numpy()]
    pairs = np.unique(np.column_stack([owners[0][found], target]), axis=0)
    is_clear = np.ones(len(pairs), dtype=bool)
    for ends in pairs.T:
        _, inverse, counts = np.unique(ends, return_inverse=True, return_counts=True)
        is_clear &= counts[inverse] == 1
    clear: IntArray = pairs[is_clear].reshape(-1, 2).astype(np.int64)
    return clear


def _unique(texts: Texts, never: NDArray[np.bool_]) -> tuple[pa.Array, IntArray]:
    """The texts that a single entity has, and the entity of each."""
    codes = texts.values.dictionary_encode()
    numbers = codes.indices.to_numpy()
    counts = np.bincount(numbers, minlength=len(codes.dictionary))
    owners = texts.owners
    kept = (counts[numbers] == 1) & ~never[owners]
    return texts.values.filter(pa.array(kept)), owners[kept]
