"""Approximate nearest neighbors by inverted lists (IVF): faster, but some neighbors are missed.

Both sides are cut into lists around common centers. The rows of a list are compared with the lists
of the other side that are nearest to their mean, in one matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

import torch
from torch import Tensor
from torch.nn.functional import normalize

from clusterea.numerics.block_sizes import block_size
from clusterea.numerics.blocks import GROUP, best_columns
from clusterea.numerics.knn import BestCells, Nearest, Neighbors, OnStep, rescored
from clusterea.numerics.products import linear
from clusterea.numerics.rows import TILE
from clusterea.numerics.ties import as_dimensions
from clusterea.types import Pair

GPU_TILE = 1 << 16  # rows of one product on a GPU


def recall(approximate: Nearest, exact: Nearest) -> Pair[float]:
    """The share of the exact neighbors that were found, in each direction."""

    def share(sides: tuple[Neighbors, Neighbors]) -> float:
        found, wanted = (neighbors.indices.sort(1).values for neighbors in sides)
        if not wanted.numel():
            return 1.0
        slots = torch.searchsorted(found, wanted).clamp(max=found.shape[1] - 1)
        return float((found.gather(1, slots) == wanted).double().mean())

    return approximate.zip(exact).map(share)


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Consecutive lists of one side, whose rows are held list after list."""

    first: int  # the number of the first list
    offsets: Tensor  # (lists + 1,) int64: where the rows of each begin
    ids: Tensor  # (rows,) int64: their numbers in the whole side
    ties: Tensor  # (rows, DIMENSIONS): from `tie_vectors`

    @property
    def numbers(self) -> range:
        return range(self.first, self.first + len(self.offsets) - 1)

    def rows_of(self, number: int) -> slice:
        """Where the rows of a list are; nowhere if it is not one of these lists."""
        if number not in self.numbers:
            return slice(0, 0)
        start, stop = self.offsets[number - self.first : number - self.first + 2].tolist()
        return slice(start, stop)


@torch.no_grad()
def searched(
    own: Tensor,
    own_lists: Lists,
    others: Sequence[Tensor],
    other_lists: Sequence[Lists],
    centers: Tensor,
    k: int,
    spare: int,
    compared: int,
    progress: OnStep | None = None,
) -> Neighbors:
    """The nearest of the other side for each row of some lists, except that some are missed.

    None is missed if the other side has no more than `compared` rows. The values are exact.

    Args:
        own: (rows, dim) float32: of some lists of one side.
        own_lists: These lists.
        others: All rows of the other side, in parts.
        other_lists: The lists of each part.
        centers: (lists - 1, dim): of all lists but the last one, which has rows of zeros.
        k: How many.
        spare: How many cells of a row beyond k are scored in float64.
        compared: The fewest rows of the other side that a row is compared with.
        progress: Called with the number of lists done and of all these lists.
    """
    width = min(k + spare, sum(map(len, others)))
    sizes = torch.zeros(len(centers) + 1, dtype=torch.int64)
    for each in other_lists:
        sizes[each.numbers.start : each.numbers.stop] = each.offsets.diff()
    found = []
    mine, theirs = _Room(), _Room()
    for done, number in enumerate(own_lists.numbers, start=1):
        members = own_lists.rows_of(number)
        if members.start < members.stop:
            order = (centers @ own[members].mean(0)).argsort(descending=True, stable=True)
            order = torch.cat([order, order.new_tensor([len(centers)])])  # rows of zeros
            enough = torch.searchsorted(sizes[order].cumsum(0), max(compared, width))
            taken = order[: int(enough) + 1].tolist()
            near = _Near.of(others, other_lists, taken, theirs)
            step = max(1, block_size("listed", near.factors.device) // len(near.factors))
            for start in range(members.start, members.stop, step):
                part = slice(start, min(start + step, members.stop))
                rows, ties = own[part], own_lists.ties[part]
                factors = _filled(mine, [(rows, ties)], len(rows))
                cells = linear(factors, near.factors)
                cells[:, len(near.ids) :] = -torch.inf  # padding
                chosen = best_columns(cells, width)
                near_by = BestCells(chosen, cells.gather(1, chosen))
                best = rescored(rows, near.rows, near_by, Pair(ties, near.ties), k, are_few=True)
                found.append(Neighbors(near.ids[best.indices], best.values))
        if progress:
            progress(done, len(own_lists.numbers))
    return Neighbors(
        torch.cat([each.indices for each in found]), torch.cat([each.values for each in found])
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Near:
    """The rows that those of a list are compared with."""

    factors: Tensor  # (padded rows, dim + DIMENSIONS)
    rows: Tensor  # (rows, dim): a part of the factors
    ties: Tensor  # (rows, DIMENSIONS)
    ids: Tensor  # (rows,) int64

    @classmethod
    def of(
        cls, others: Sequence[Tensor], lists: Sequence[Lists], taken: Sequence[int], room: _Room
    ) -> _Near:
        parts = []
        for number in taken:
            for rows, each in zip(others, lists, strict=True):
                at = each.rows_of(number)
                if at.start < at.stop:
                    parts.append((rows[at], each.ties[at], each.ids[at]))
        ties = torch.cat([part[1] for part in parts])
        padded = -(-len(ties) // GROUP) * GROUP
        factors = _filled(room, [part[:2] for part in parts], padded)
        dim = factors.shape[1] - ties.shape[1]
        return cls(factors, factors[: len(ties), :dim], ties, torch.cat([p[2] for p in parts]))


def _filled(room: _Room, parts: Sequence[tuple[Tensor, Tensor]], count: int) -> Tensor:
    """(count, dim + DIMENSIONS): rows with their tie vectors, then zeros."""
    dim, more = (part.shape[1] for part in parts[0])
    result = room.shaped(count, dim + more)
    start = 0
    for rows, ties in parts:
        stop = start + len(rows)
        result[start:stop, :dim] = rows
        result[start:stop, dim:] = as_dimensions(ties)
        start = stop
    result[start:] = 0.0
    return result


class _Room:
    """A buffer that is used again: first access to new memory takes as long as filling it."""

    def __init__(self) -> None:
        self._numbers = torch.empty(0)

    def shaped(self, rows: int, columns: int) -> Tensor:
        """(rows, columns) float32 with old values in it."""
        if self._numbers.numel() < rows * columns:
            self._numbers = torch.empty(rows * columns)
        return self._numbers[: rows * columns].view(rows, columns)


@torch.no_grad()
def list_centers(points: Tensor, count: int, rounds: int) -> Tensor:
    """(count, dim): the centers of lists, by k-means.

    Args:
        points: (n, dim): rows to fit them to, chosen by keys and not by ids.
        count: How many; fewer if there are fewer points.
        rounds: Of k-means.
    """
    points = points.float()
    centers = points[:: max(1, len(points) // count)][:count].clone()
    for _ in range(rounds):
        labels = list_labels(points, centers)
        sums = centers.new_zeros(len(centers) + 1, centers.shape[1])
        sums = sums.index_add_(0, labels, points)[:-1]
        # The center of an empty list stays where it is.
        centers = torch.where(sums.any(1, keepdim=True), normalize(sums, dim=1), centers)
    return centers


def num_lists(num_rows: int) -> int:
    """About as many lists as rows in a list."""
    return max(1, isqrt(num_rows))


def list_labels(rows: Tensor, centers: Tensor) -> Tensor:
    """(rows,) int64: the list of each row, that of the nearest center; the last for zeros."""
    if not bool(rows.isfinite().all()):
        raise ValueError("embeddings must be finite.")
    step = TILE if rows.device.type == "cpu" else GPU_TILE
    labels = [linear(part.float(), centers).argmax(1) for part in torch.split(rows, step)]
    return torch.where(rows.any(1), torch.cat(labels), len(centers))
