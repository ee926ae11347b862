"""`mean`: the mean of several similarities of the same entities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from clusterea.numerics.cells import add, without
from clusterea.types import IntArray, Similarity


def mean(similarities: Sequence[Similarity], seeds: IntArray) -> Similarity:
    """The mean, where an absent cell counts as 0.

    Args:
        similarities: One or more, each of which may have rows and columns of seeds.
        seeds: (n, 2): their rows and columns are left out.
    """
    known = torch.tensor(seeds, device=similarities[0].values.device)
    total = add(*(without(each, known[:, 0], known[:, 1]) for each in similarities))
    return replace(total, values=total.values / len(similarities))
