"""`mean` of several similarities of the same entities, and `restored` pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from clusterea.numerics.cells import add, from_cells, without
from clusterea.types import IntArray, Similarity

SURE = 0.5  # above it, structure is sure enough to overrule equal names


def mean(similarities: Sequence[Similarity], seeds: IntArray) -> Similarity:
    """The mean, where an absent cell counts as 0.

    Args:
        similarities: One or more, each of which may have rows and columns of seeds.
        seeds: (n, 2): their rows and columns are left out.
    """
    known = torch.tensor(seeds, device=similarities[0].values.device)
    total = add(*(without(each, known[:, 0], known[:, 1]) for each in similarities))
    return replace(total, values=total.values / len(similarities))


def restored(similarity: Similarity, pairs: Tensor) -> Similarity:
    """The similarity in which the entities of these pairs have no other candidates.

    A pair stays as it is if one of its entities has another candidate above `SURE`.

    Args:
        similarity: In [0, 1].
        pairs: (n, 2), one-to-one. The value of a pair that is put back becomes 1.
    """
    rows, columns, values = similarity.rows(), similarity.columns, similarity.values
    source, target = pairs.to(values.device).T
    partner = columns.new_full((similarity.num_entities.source,), -1)
    partner[source] = target
    is_rival = (values > SURE) & (partner[rows] != columns)
    is_free = ~torch.isin(source, rows[is_rival]) & ~torch.isin(target, columns[is_rival])
    source, target = source[is_free], target[is_free]
    others = without(similarity, source, target)
    return add(
        others, from_cells(source, target, values.new_ones(len(source)), others.num_entities)
    )
