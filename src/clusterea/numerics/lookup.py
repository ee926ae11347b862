"""Look-ups in sorted arrays: of values, and of the cells of a sparse similarity."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.types import Similarity


def find_sorted(rising: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """(n,) each: an index into `rising`, and whether the value there is the one looked for."""
    slots = torch.searchsorted(rising, values)
    if not rising.numel():
        return slots, torch.zeros_like(slots, dtype=torch.bool)
    slots = slots.clamp(max=rising.numel() - 1)
    return slots, rising[slots] == values


def find_in_ranges(
    rising: Tensor, begins: Tensor, ends: Tensor, values: Tensor
) -> tuple[Tensor, Tensor]:
    """(n,) each: an index into a range of `rising`, and whether the value there is the one asked.

    The index is that of the first value of the range that is not smaller; the range's end if all
    are. A binary search in all ranges at once.

    Args:
        rising: Ascending within each range.
        begins: (n,): where the range of each value begins.
        ends: (n,): where it ends.
        values: (n,): looked for.
    """
    slots = begins.clone()
    at = (begins < ends).nonzero().flatten()
    low, high, asked = (each.index_select(0, at) for each in (begins, ends, values))
    while len(at):
        middle = (low + high) >> 1
        is_below = rising.index_select(0, middle) < asked
        low, high = torch.where(is_below, middle + 1, low), torch.where(is_below, high, middle)
        slots[at] = low
        is_open = (low < high).nonzero().flatten()
        at, low, high, asked = (each.index_select(0, is_open) for each in (at, low, high, asked))
    return slots, _is_there(rising, slots, ends, values)


def _is_there(rising: Tensor, slots: Tensor, ends: Tensor, values: Tensor) -> Tensor:
    if not rising.numel():
        return torch.zeros_like(slots, dtype=torch.bool)
    found = rising.index_select(0, slots.clamp(max=rising.numel() - 1))
    return (slots < ends) & (found == values)


def find_cells(similarity: Similarity, sources: Tensor, targets: Tensor) -> Tensor:
    """(n,) int64: the position of each pair's cell, -1 where the pair has none."""
    return find_in_rows(similarity.row_offsets, similarity.columns, sources, targets)


def find_in_rows(offsets: Tensor, columns: Tensor, rows: Tensor, wanted: Tensor) -> Tensor:
    """(n,) int64: where each wanted column is in its row, -1 where it is not there.

    Args:
        offsets: (rows + 1,): where each row begins.
        columns: (cells,): of all rows, rising within a row.
        rows: (n,)
        wanted: (n,)
    """
    at, is_there = find_in_ranges(columns, offsets[rows], offsets[rows + 1], wanted)
    return torch.where(is_there, at, -1)


def is_among(pairs: Tensor, others: Tensor) -> Tensor:
    """(pairs,) bool: whether each of these (n, 2) pairs is one of the others."""
    if not len(others) or not len(pairs):
        return torch.zeros(len(pairs), dtype=torch.bool, device=pairs.device)
    width = 1 + torch.maximum(pairs[:, 1].max(), others[:, 1].max())
    return torch.isin(pairs[:, 0] * width + pairs[:, 1], others[:, 0] * width + others[:, 1])


def verdicts(links: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """(links,) bool each: whether a link has an entity of `known`, and whether it is in `known`.

    A link that has such an entity and is not in `known` contradicts it.

    Args:
        links: (n, 2): source entity, target entity.
        known: (m, 2), one-to-one.
    """
    is_judged = torch.isin(links[:, 0], known[:, 0]) | torch.isin(links[:, 1], known[:, 1])
    # Each pair as one number. The width is larger than any target id, so numbers are distinct.
    ids = torch.cat([links, known])[:, 1]
    width = int(ids.max()) + 1 if len(ids) else 1
    keys = (pairs[:, 0] * width + pairs[:, 1] for pairs in (links, known))
    return is_judged, torch.isin(*keys)
