"""`near_groups`: which columns a group of rows is compared with, so that few neighbors are missed.

Rows and columns are in the order of lists, so consecutive ones are near each other. A group of rows
and a tile of columns are compared if the tile is among the nearest of the group, or the group among
the nearest of the tile, by the cosine of their means. How many are near is measured: as many as
find a given share of the nearest neighbors of a few thousand rows of both sides.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from clusterea.numerics.block_sizes import fitting_size
from clusterea.numerics.blocks import block_product
from clusterea.numerics.gpu_search import GROUP
from clusterea.types import Pair

TILE = 256  # consecutive columns that are compared with a group or not
EXAMPLES = 4096  # rows of each side whose neighbors are known


@dataclass(frozen=True, slots=True, eq=False)
class NearGroups:
    """The choice: called with the number of a group, it gives the columns."""

    near: Tensor  # (groups, tiles) bool
    columns: int

    @property
    def share(self) -> float:
        """The share of all products that is computed."""
        return float(self.near.float().mean())

    def __call__(self, group: int) -> Tensor:
        """(n,) int32: the columns that a group is compared with, ascending."""
        tiles = self.near[group].nonzero()
        columns = (tiles * TILE + torch.arange(TILE, device=tiles.device)).flatten()
        return columns[columns < self.columns].int()


@torch.no_grad()
def near_groups(vectors: Pair[Tensor], k: int, recall: float) -> NearGroups:
    """The pairs of groups and tiles to compare.

    Args:
        vectors: (m, dim) and (n, dim): rows of unit length, in the order of lists.
        k: How many neighbors of a row are looked for.
        recall: The share of these neighbors that should be found, of both sides together.
    """
    source, target = vectors
    scores = _means(source, GROUP) @ _means(target, TILE).T
    needed = torch.minimum(_ranks(scores, 1), _ranks(scores, 0))
    draw = torch.Generator().manual_seed(0)
    some = vectors.map(
        lambda side: torch.randperm(len(side), generator=draw)[:EXAMPLES].to(side.device)
    )
    of_source = _nearest(source[some.source], target, k) // TILE
    of_target = _nearest(target[some.target], source, k) // GROUP
    told = torch.cat(
        [
            needed[(some.source // GROUP).unsqueeze(1), of_source].flatten(),
            needed[of_target, (some.target // TILE).unsqueeze(1)].flatten(),
        ]
    )
    enough = told.sort().values[min(len(told) - 1, int(recall * len(told)))]
    return NearGroups(needed <= enough, len(target))


def _means(rows: Tensor, size: int) -> Tensor:
    """(parts, dim) of unit length: the directions of the means of consecutive rows."""
    parts = [part.float().mean(0) for part in torch.split(rows[len(rows) // size * size :], size)]
    whole = rows[: len(rows) // size * size].view(-1, size, rows.shape[1])
    means = torch.cat(
        [each.float().mean(1) for each in torch.split(whole, 1 << 10)]
        + [part.unsqueeze(0) for part in parts]
    )
    return normalize(means, dim=1)


def _ranks(scores: Tensor, dim: int) -> Tensor:
    """The rank of each score along a dimension, from 0 for the largest to 1."""
    order = scores.sort(dim=dim, descending=True, stable=True).indices
    places = torch.arange(scores.shape[dim], device=scores.device, dtype=torch.float32)
    places = places.unsqueeze(1 - dim).expand_as(scores) / max(1, scores.shape[dim] - 1)
    return torch.empty_like(scores).scatter_(dim, order, places)


def _nearest(rows: Tensor, others: Tensor, k: int) -> Tensor:
    """(rows, k): the numbers of each row's nearest others."""
    step = max(k, fitting_size("nearest", rows.device, 16) // len(rows))
    values, columns = [], []
    for start in range(0, len(others), step):
        best = block_product(rows, others[start : start + step]).topk(
            min(k, len(others) - start, step), dim=1
        )
        values.append(best.values)
        columns.append(best.indices + start)
    every = torch.cat(values, 1)
    return torch.cat(columns, 1).gather(1, every.topk(min(k, every.shape[1]), dim=1).indices)
