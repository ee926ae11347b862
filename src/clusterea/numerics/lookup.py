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


def find_cells(similarity: Similarity, sources: Tensor, targets: Tensor) -> Tensor:
    """(n,) int64: the position of each pair's cell, -1 where the pair has none.

    A binary search in all the rows at once: columns rise within a row.
    """
    columns = similarity.columns
    if not columns.numel():
        return torch.full_like(sources, -1)
    low, end = similarity.row_offsets[sources], similarity.row_offsets[sources + 1]
    high = end
    for _ in range(int(similarity.row_offsets.diff().max()).bit_length()):
        middle = (low + high) // 2
        below = (columns[middle.clamp(max=columns.numel() - 1)] < targets) & (low < high)
        low, high = torch.where(below, middle + 1, low), torch.where(below, high, middle)
    at = low.clamp(max=columns.numel() - 1)
    return torch.where((low < end) & (columns[at] == targets), at, -1)


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
