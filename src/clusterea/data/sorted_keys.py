"""Sorts many integers in threads: each takes a range of the values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from clusterea.in_threads import in_threads
from clusterea.threads import available_cpus
from clusterea.types import IntArray

LEAST = 1 << 17  # fewer keys are sorted at once
_SAMPLE = 1 << 14  # keys that tell where to cut

Keys = NDArray[Any]
Result = TypeVar("Result")


def of_ranges(keys: Keys, use: Callable[[NDArray[np.bool_] | slice], Result]) -> list[Result]:
    """What `use` makes of the keys in each range of values, by ascending ranges.

    It gets an index that picks a range's keys, in their order. Equal keys are in one range.
    """
    count = available_cpus() if len(keys) >= LEAST else 1
    if count == 1:
        return [use(slice(None))]
    sample = np.sort(keys[:: max(len(keys) // _SAMPLE, 1)])
    cuts = np.unique(sample[np.arange(1, count) * len(sample) // count])

    def within(number: int) -> Result:
        if number == 0:
            return use(keys < cuts[0])
        if number == len(cuts):
            return use(keys >= cuts[-1])
        return use((keys >= cuts[number - 1]) & (keys < cuts[number]))

    return in_threads(within, range(len(cuts) + 1))


def sorted_ranges(keys: IntArray) -> list[IntArray]:
    """The keys in ascending order, in some pieces; equal keys are in one piece."""
    return of_ranges(keys, lambda range_: np.sort(keys[range_]))


def has_repeats(keys: IntArray) -> bool:
    """Whether some key occurs more than once."""
    return any((part[1:] == part[:-1]).any() for part in sorted_ranges(keys))


def first_places(keys: IntArray) -> IntArray:
    """The place of the first of each group of equal keys, ascending."""
    everywhere = np.arange(len(keys))

    def firsts(range_: NDArray[np.bool_] | slice) -> IntArray:
        places = everywhere[range_]
        return places[np.unique(keys[range_], return_index=True)[1]]

    found: IntArray = np.sort(np.concatenate(of_ranges(keys, firsts)))
    return found
