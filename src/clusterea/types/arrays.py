"""Checks and conversions for the integer arrays inside the types."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


def frozen_ids(value: Any, name: str, *, columns: int | None = None) -> IntArray:
    """A read-only int64 view of `value`: (n,) without `columns`, else (n, columns).

    The caller's array stays writable. It is copied only if its type or layout must change.
    """
    array = np.asarray(value)
    if array.size == 0:
        array = array.reshape(0) if columns is None else array.reshape(0, columns)
    wanted = "(n,)" if columns is None else f"(n, {columns})"
    dimensions = 1 if columns is None else 2
    if array.ndim != dimensions or (columns is not None and array.shape[1] != columns):
        raise ValueError(f"{name} must have shape {wanted}. Got {array.shape} instead.")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must hold integers. Got {array.dtype} instead.")
    view = np.ascontiguousarray(array, dtype=np.int64).view()
    view.flags.writeable = False
    return view


def check_range(ids: IntArray, name: str, size: int) -> None:
    """Raises unless every id lies in [0, size)."""
    if ids.size and (ids.min() < 0 or ids.max() >= size):
        raise ValueError(
            f"{name} must lie in [0, {size}). Got values from {ids.min()} to {ids.max()} instead."
        )


def check_count(value: int, name: str, *, least: int = 0) -> None:
    """Raises unless `value` is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be an int in [{least}, inf). Got {value!r} instead.")
