"""`Names`: the names of the entities or relations of one graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clusterea.in_threads import in_threads
from clusterea.types.arrays import IntArray
from clusterea.types.string_parts import LEAST, PARTS, StringParts


class Names(Sequence[str]):
    """Name i belongs to entity (or relation) i; all names are distinct.

    The strings are in one Arrow array, which saves memory for millions of names.
    """

    __slots__ = ("_array", "_parts")

    def __init__(self, names: Iterable[str] | pa.Array) -> None:
        array = names if isinstance(names, pa.Array) else pa.array(names, type=pa.large_string())
        array = array.cast(pa.large_string())
        if array.null_count:
            raise ValueError(f"names must not be null. Got {array.null_count} missing instead.")
        distinct = pc.count_distinct(array).as_py()
        if distinct != len(array):
            raise ValueError(
                f"names must be distinct. Got {len(array):,} names, {distinct:,} of them distinct."
            )
        self._array = array
        self._parts: StringParts | None = None  # made when many names are looked up

    @classmethod
    def of_distinct(cls, array: pa.Array) -> Names:
        """The names in an array of large strings that are known to be distinct: no check."""
        names = cls.__new__(cls)
        names._array, names._parts = array, None
        return names

    @property
    def arrow(self) -> pa.Array:
        """The names as an Arrow array of large strings."""
        return self._array

    def take(self, ids: IntArray) -> list[str]:
        """The names of `ids`, in the same order."""
        return self._array.take(pa.array(ids)).to_pylist()  # type: ignore[no-any-return]

    def ids_of(self, names: pa.Array | pa.ChunkedArray | Sequence[str]) -> IntArray:
        """The id of each of `names`; -1 if it is unknown."""
        if not isinstance(names, (pa.Array, pa.ChunkedArray)):
            names = pa.array(names, type=pa.large_string())
        names = names.cast(pa.large_string())
        if len(self) < LEAST or len(names) < LEAST:
            return _index_in(names, self._array)
        if isinstance(names, pa.ChunkedArray):
            names = names.combine_chunks()
        if self._parts is None:
            self._parts = StringParts.of(self._array)
        own, asked = self._parts, StringParts.of(names)
        ids = np.empty(len(names), dtype=np.int64)

        def look_up(part: int) -> None:
            known, wanted = own.range(part), asked.range(part)
            found = _index_in(asked.strings[wanted], own.strings[known])
            ids[asked.order[wanted]] = np.append(own.order[known], -1)[found]

        in_threads(look_up, range(PARTS))
        return ids

    def keys(self) -> IntArray:
        """(n,): a 64-bit hash of each name, the same on every machine."""
        names = self._array.cast(pa.large_binary()).to_pylist()
        digests = b"".join(blake2b(name, digest_size=8).digest() for name in names)
        return np.frombuffer(digests, dtype="<i8").astype(np.int64)

    def __len__(self) -> int:
        return len(self._array)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Names: ...
    def __getitem__(self, index: int | slice) -> str | Names:
        if isinstance(index, slice):
            return Names(self._array[index])
        return self._array[index].as_py()  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        shown = ", ".join(repr(name) for name in self._array[:3].to_pylist())
        return f"Names({len(self):,}: {shown}{', …' if len(self) > 3 else ''})"


def _index_in(names: pa.Array | pa.ChunkedArray, known: pa.Array) -> IntArray:
    """The place of each name among the known ones; -1 if it is unknown."""
    places = pc.index_in(names, value_set=known)
    return pc.fill_null(places, -1).to_numpy().astype(np.int64)  # type: ignore[no-any-return]
