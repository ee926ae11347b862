"""Sums and softmax over segments: runs of rows that belong to one output row."""

from __future__ import annotations

import torch
from torch import Tensor

UNITS_OF_ONE = 2.0**30  # fixed-point scale of `unordered_sum`


def lengths(offsets: Tensor) -> Tensor:
    """(segments,): rows in each segment, from (segments + 1,) offsets."""
    return offsets[1:] - offsets[:-1]


def offsets_of(counts: Tensor) -> Tensor:
    """(segments + 1,): where each segment begins and the last one ends."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def owners(offsets: Tensor, rows: int) -> Tensor:
    """(rows,): the segment of each row. Passing `rows`, the last offset, saves a GPU a wait."""
    return torch.repeat_interleave(lengths(offsets), output_size=rows)


def ranges(begins: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """(total,) each: the index of a range, and a number in it, for all ranges one by one."""
    offsets = offsets_of(counts)
    owner = owners(offsets, int(offsets[-1]))
    numbers = torch.arange(len(owner), device=owner.device)
    return owner, numbers + (begins - offsets[:-1]).index_select(0, owner)


def segment_sum(values: Tensor, offsets: Tensor) -> Tensor:
    """(segments, …): the sum of each segment's rows; an empty segment sums to zero."""
    return torch.segment_reduce(values, "sum", offsets=offsets, axis=0, unsafe=True)


def unordered_sum(values: Tensor, owners: Tensor, size: int) -> Tensor:
    """(size,) float64: the sum of each owner's values, each rounded to 2^-30.

    Integers are added, so the sum is the same on every device and in every order. It must be less
    than 2^33.
    """
    fixed = (values.double() * UNITS_OF_ONE).round().long()
    return fixed.new_zeros(size).index_add_(0, owners, fixed).double() / UNITS_OF_ONE


def segment_softmax(scores: Tensor, offsets: Tensor, owner: Tensor) -> Tensor:
    """(rows, heads): softmax of `scores` within each segment."""
    largest = torch.segment_reduce(
        scores.detach(), "max", offsets=offsets, axis=0, initial=-torch.inf, unsafe=True
    )
    weights = (scores - largest.index_select(0, owner)).exp()
    return weights / segment_sum(weights, offsets).index_select(0, owner)
