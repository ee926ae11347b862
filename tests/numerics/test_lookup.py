"""Look-ups in sorted arrays, against looking through them."""

from __future__ import annotations

from bisect import bisect_left

import torch
from hypothesis import given
from hypothesis import strategies as st

from clusterea.numerics.lookup import find_in_ranges

RANGES = st.lists(st.lists(st.integers(0, 20), max_size=9).map(sorted), min_size=1, max_size=5)
ASKED = st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 21)), max_size=20)


@given(RANGES, ASKED, st.sampled_from([torch.int16, torch.int32, torch.int64]))
def test_in_ranges(
    ranges: list[list[int]], asked: list[tuple[int, int]], kind: torch.dtype
) -> None:
    rising = torch.tensor([each for some in ranges for each in some], dtype=kind)
    offsets = torch.tensor([0, *(len(some) for some in ranges)]).cumsum(0)
    chosen = torch.tensor([number % len(ranges) for number, _ in asked], dtype=torch.int64)
    values = torch.tensor([value for _, value in asked], dtype=torch.int64)
    begins, ends = offsets[chosen], offsets[chosen + 1]
    slots, is_there = find_in_ranges(rising, begins, ends, values)
    pairs = list(zip(chosen.tolist(), values.tolist(), strict=True))
    assert (slots - begins).tolist() == [bisect_left(ranges[i], value) for i, value in pairs]
    assert is_there.tolist() == [value in ranges[i] for i, value in pairs]
