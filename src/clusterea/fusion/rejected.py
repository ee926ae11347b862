"""Leaves out pairs that a person rejected."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.numerics.knn import Neighbors
from clusterea.numerics.lookup import is_among

# In place of the similarity of a rejected pair. Others are higher: a cosine is at least -1, and
# names and features only raise it.
LOWEST = -4.0


def with_rejected_last(near: Neighbors, own: Tensor, others: Tensor, wrong: Tensor) -> Neighbors:
    """The neighbors with rejected pairs last, with the value `LOWEST`.

    Args:
        near: Of some rows.
        own: (rows,): their entities.
        others: (all rows of the other side,): their entities.
        wrong: (n, 2): rejected pairs; an entity of this side comes first.
    """
    device, width = near.indices.device, near.indices.shape[1]
    at = torch.isin(own, wrong[:, 0].to(own.device)).nonzero().flatten().to(device)
    some = near.indices[at]  # of the entities with a rejected pair
    rows = own.to(device)[at].repeat_interleave(width)
    pairs = torch.stack([rows, others.to(device)[some.flatten()]], dim=1)
    is_wrong = is_among(pairs, wrong.to(device)).view_as(some)
    best = near.values[at].masked_fill(is_wrong, LOWEST)
    best_values, order = best.sort(dim=1, descending=True, stable=True)
    indices, values = near.indices.clone(), near.values.clone()
    indices[at], values[at] = some.gather(1, order), best_values
    return Neighbors(indices, values)
