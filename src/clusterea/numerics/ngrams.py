"""Vectors of short texts: TF-IDF of character n-grams, sketched to a fixed number of dimensions.

Each n-gram is hashed to one of 2^22 numbers, and each number to `SPREAD` dimensions with random
signs (a sparse random projection: Achlioptas, 2003; Kane and Nelson, 2014). The product of two
sketches is the cosine of the two texts, with an error of about the root of 1 / dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint32]
Floats = NDArray[np.float32]
Hashes = NDArray[np.uint64]

LONGEST = 4  # characters of an n-gram
BITS = 22  # of the number that an n-gram is hashed to
SPREAD = 4  # dimensions that each n-gram adds to
CHARACTERS_AT_ONCE = 1 << 18  # some 200 MB beside the result
SPACE = 32  # the code of the character around each text
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, slots=True, eq=False)
class CodedTexts:
    """Texts as code points, one after the other, with a space before and after each."""

    codes: Codes
    offsets: NDArray[np.int64]  # (texts + 1,)

    def __len__(self) -> int:
        return len(self.offsets) - 1


def document_counts(texts: CodedTexts) -> NDArray[np.int64]:
    """(2^BITS,): the number of texts that have each n-gram."""
    counts = np.zeros(1 << BITS, dtype=np.int64)
    for part in _parts(texts):
        _, grams, _ = _counted(texts, part)
        counts += np.bincount(grams, minlength=1 << BITS)
    return counts


def sketched(
    texts: CodedTexts,
    owners: NDArray[np.int64],
    num_owners: int,
    rarity: Floats,
    dimensions: int,
    seed: int,
) -> Floats:
    """(owners, dimensions): the sum of the sketches of each owner's texts, of unit length.

    An owner without texts has zeros. Every text has the same weight.

    Args:
        texts: Whose n-grams are sketched.
        owners: (texts,), ascending: the row that each is added to.
        num_owners: The number of rows.
        rarity: (2^BITS,): the weight of each n-gram.
        dimensions: The width of the result.
        seed: Of the projection.
    """
    result = np.zeros((num_owners, dimensions), dtype=np.float32)
    slots, signs = _projection(dimensions, seed)
    for part in _parts(texts, owners):
        rows, grams, times = _counted(texts, part)
        weights = (1 + np.log(times)) * rarity[grams]
        norms = np.sqrt(np.bincount(rows, weights * weights, minlength=part.stop - part.start))
        weights /= np.maximum(norms, 1e-12)[rows]
        found, own = np.unique(owners[part], return_inverse=True)
        places = (own[rows] * dimensions)[:, None] + slots[grams]
        values = (weights / SPREAD**0.5)[:, None] * signs[grams]
        sums = np.bincount(places.ravel(), values.ravel(), minlength=len(found) * dimensions)
        result[found] = sums.reshape(len(found), dimensions)
    for start in range(0, num_owners, 1 << 16):  # bounds the memory beside the result
        block = result[start : start + (1 << 16)]
        norms = np.sqrt(np.einsum("ij,ij->i", block, block))
        block /= np.maximum(norms, 1e-12)[:, None]
    return result


def _parts(texts: CodedTexts, owners: NDArray[np.int64] | None = None) -> Iterator[slice]:
    """Consecutive texts with about `CHARACTERS_AT_ONCE` characters.

    All texts of an owner are in one part, so that its sum does not depend on the texts before it.
    """
    begin = 0
    while begin < len(texts):
        limit = texts.offsets[begin] + CHARACTERS_AT_ONCE
        end = max(begin + 1, int(np.searchsorted(texts.offsets, limit, side="right")) - 1)
        if owners is not None:
            end = int(np.searchsorted(owners, owners[end - 1], side="right"))
        yield slice(begin, end)
        begin = end


def _counted(
    texts: CodedTexts, part: slice
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The n-grams of some texts: the text (from 0), the n-gram, and how often it is there."""
    offsets = texts.offsets[part.start : part.stop + 1]
    codes = texts.codes[offsets[0] : offsets[-1]].astype(np.uint64)
    lengths = np.diff(offsets)
    rows = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
    ends = np.repeat(offsets[1:] - offsets[0], lengths)
    left = ends - np.arange(len(codes))  # characters from here to the end of the text
    keys = []
    hashes = np.zeros(len(codes), dtype=np.uint64)
    for size in range(1, LONGEST + 1):
        count = len(codes) - size + 1
        if count <= 0:
            break
        hashes = hashes[:count] * _STEP + codes[size - 1 :] + np.uint64(1)
        is_inside = left[:count] >= size
        if size == 1:
            is_inside = is_inside & (codes != SPACE)
        grams = _mixed(hashes[is_inside] + np.uint64(size)) >> np.uint64(64 - BITS)
        keys.append((rows[:count][is_inside] << np.uint64(BITS)) | grams)
    every = np.sort(np.concatenate(keys)) if keys else np.empty(0, dtype=np.uint64)
    first = np.flatnonzero(np.diff(every, prepend=~every[:1]))
    times = np.diff(first, append=len(every)).astype(np.float64)
    distinct = every[first]
    mask = np.uint64((1 << BITS) - 1)
    return (
        (distinct >> np.uint64(BITS)).astype(np.int64),
        (distinct & mask).astype(np.int64),
        times,
    )


def _projection(dimensions: int, seed: int) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """(2^BITS, SPREAD) each: the dimensions of each n-gram, and their signs."""
    draw = np.random.default_rng(seed)
    # Each of the dimensions is from a part of its own, so that they are distinct.
    bounds = np.linspace(0, dimensions, SPREAD + 1).astype(np.int64)
    slots = np.empty((1 << BITS, SPREAD), dtype=np.int32)
    for column in range(SPREAD):
        low, high = bounds[column], max(bounds[column + 1], bounds[column] + 1)
        slots[:, column] = draw.integers(low, high, 1 << BITS)
    signs = draw.integers(0, 2, (1 << BITS, SPREAD), dtype=np.int8) * 2 - 1
    return slots, signs.astype(np.int8)


def _mixed(values: Hashes) -> Hashes:
    """Spread over all 64 bits (splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    mixed: Hashes = values ^ (values >> np.uint64(31))
    return mixed
