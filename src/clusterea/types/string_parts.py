"""`StringParts`: many strings in parts, so that threads can look them up apart.

Equal strings are in parts of the same number. A part's hash table fits into a core's cache, so even
one thread is faster with parts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clusterea.in_threads import in_threads
from clusterea.types.arrays import IntArray

PARTS = 64
LEAST = 1 << 16  # fewer strings are not worth it
_TAKEN = 1 << 18  # strings that one thread takes at once
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # of Fibonacci hashing


@dataclass(frozen=True, slots=True, eq=False)
class StringParts:
    """Strings by part, and the place that each of them had."""

    strings: pa.Array
    order: IntArray  # (n,)
    ends: IntArray  # (parts + 1,): where each part begins, and the end

    @classmethod
    def of(cls, strings: pa.Array, parts: int = PARTS) -> StringParts:
        """The parts of large strings: `PARTS`, or else one."""
        if parts == 1:
            return cls(strings, np.arange(len(strings)), np.array([0, len(strings)]))
        numbers = _part_numbers(strings)
        order = np.argsort(numbers, kind="stable")
        ends = np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=parts))])
        return cls(take_strings(strings, order), order, ends)

    def range(self, part: int) -> slice:
        """Where the strings of one part are; they are in their order."""
        return slice(*self.ends[part : part + 2].tolist())


def take_strings(strings: pa.Array, places: IntArray) -> pa.Array:
    """The strings at these places; many are taken in threads."""
    starts = range(0, len(places), _TAKEN)
    if len(starts) < 2:
        return strings.take(pa.array(places))
    return pa.concat_arrays(
        in_threads(lambda start: strings.take(pa.array(places[start : start + _TAKEN])), starts)
    )


def _part_numbers(strings: pa.Array) -> NDArray[np.uint8]:
    """(n,): the part of each string, from its last eight bytes."""
    _, offsets, content = strings.buffers()
    if content is None or len(content) < 8:
        content = (b"" if content is None else content.to_pybytes()) + bytes(8)
    bounds = np.frombuffer(offsets, np.int64)[strings.offset :][: len(strings) + 1]
    words = np.ndarray(len(content) - 7, "<u8", content, strides=(1,))  # one from each byte on
    ends = bounds[1:]
    before = 8 - np.minimum(ends, 8)  # bytes after the string, where it ends among the first
    other = 8 - np.minimum(np.diff(bounds), 8)  # bytes before it, where it is shorter
    last = words[np.maximum(ends - 8, 0)]
    last <<= (8 * before).astype(np.uint64)
    last >>= (8 * other).astype(np.uint64)
    last ^= last >> np.uint64(32)
    last *= _MULTIPLIER
    return (last >> np.uint64(58)).astype(np.uint8)
