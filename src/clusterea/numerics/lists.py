"""Approximate nearest neighbors by inverted lists (IVF): faster, but some neighbors are missed.

Both sides are cut into lists around common centers. The rows of a list are compared with the lists
of the other side that are nearest to their mean, in one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt

import torch
from torch import Tensor
from torch.nn.functional import normalize

from clusterea.numerics.block_sizes import block_size
from clusterea.numerics.knn import (
    SPARE,
    Nearest,
    Neighbors,
    OnStep,
    none_found,
    rescored,
)
from clusterea.numerics.segments import offsets_of
from clusterea.numerics.ties import as_dimensions, tie_vectors
from clusterea.types import Pair

GROUP = 32  # cells of a group
ROWS_AT_ONCE = 8192  # rows that are assigned to centers at a time


@torch.no_grad()
def nearest_approximate(
    source: Tensor,
    target: Tensor,
    k: int,
    ties: Pair[Tensor],
    seed: int,
    *,
    compared: int,
    sample: int,
    rounds: int,
    spare: int = SPARE,
    progress: OnStep | None = None,
) -> Nearest:
    """What `knn.nearest` returns, except that some neighbors are missed. The values are exact.

    None is missed if the other side has no more than `compared` rows. For CPUs only: a GPU
    computes all products in less time than the lists would take.

    Args:
        source: (m, dim) float32: rows of unit length, or zeros.
        target: (n, dim): likewise.
        k: How many; all of the other side, where it has fewer.
        ties: (m,) and (n,): the entities' keys.
        seed: Of the order of ties.
        compared: The fewest rows of the other side that a row is compared with.
        sample: Rows for each center that the centers are fitted to.
        rounds: Of k-means, which fits the centers.
        spare: How many cells of a row beyond k are scored in float64.
        progress: Called with the number of lists done and of all lists.
    """
    sides = Pair(source, target)
    sizes = sides.map(len)
    width = Pair(min(k + spare, sizes.target), min(k + spare, sizes.source))
    if not width.source or not width.target:
        return sizes.map(lambda rows: none_found(rows, source.device))
    if not all(
        bool(part.isfinite().all()) for side in sides for part in _parts(side, ROWS_AT_ONCE)
    ):
        raise ValueError("embeddings must be finite.")
    vectors = tie_vectors(ties, seed)
    centers = _centers(sides, ties, sample, rounds)
    lists = sides.map(lambda side: _Lists.of(side, centers))
    total = sum(each.count for each in lists)
    done = iter(range(1, total + 1))

    def tell() -> None:
        if progress:
            progress(next(done), total)

    targets = _searched(sides, vectors, lists, centers, width.source, compared, tell)
    sources = _searched(
        sides.swap(), vectors.swap(), lists.swap(), centers, width.target, compared, tell
    )
    return Pair(
        rescored(source, target, targets, vectors, k),
        rescored(target, source, sources, vectors.swap(), k),
    )


def recall(approximate: Nearest, exact: Nearest) -> Pair[float]:
    """The share of the exact neighbors that were found, in each direction."""

    def share(sides: tuple[Neighbors, Neighbors]) -> float:
        found, wanted = (neighbors.indices.sort(1).values for neighbors in sides)
        if not wanted.numel():
            return 1.0
        slots = torch.searchsorted(found, wanted).clamp(max=found.shape[1] - 1)
        return float((found.gather(1, slots) == wanted).double().mean())

    return approximate.zip(exact).map(share)


def _searched(
    sides: Pair[Tensor],
    ties: Pair[Tensor],
    lists: Pair[_Lists],
    centers: Tensor,
    width: int,
    compared: int,
    tell: Callable[[], None],
) -> Tensor:
    """(source rows, width) int32: the nearest of the targets compared, in no order."""
    chosen = torch.empty(len(sides.source), width, dtype=torch.int32)
    mine, theirs, products = _Room(), _Room(), _Room()
    for number in range(lists.source.count):
        members = lists.source.members_of(number)
        if len(members):
            mean = sides.source[members].mean(0)
            near = lists.target.nearest_to(mean, centers, max(compared, width))
            others = _factors(sides.target, ties.target, near, theirs, GROUP)
            for part in _parts(members, block_size("nearest", others.device) // len(others)):
                own = _factors(sides.source, ties.source, part, mine)
                cells = torch.mm(own, others.T, out=products.shaped(len(own), len(others)))
                cells[:, len(near) :] = -torch.inf  # padding
                chosen[part] = near[_best(cells, width)].int()
        tell()
    return chosen


class _Room:
    """A buffer that is used again: first access to new memory takes as long as filling it."""

    def __init__(self) -> None:
        self._numbers = torch.empty(0)

    def shaped(self, rows: int, columns: int) -> Tensor:
        """(rows, columns) float32 with old values in it."""
        if self._numbers.numel() < rows * columns:
            self._numbers = torch.empty(rows * columns)
        return self._numbers[: rows * columns].view(rows, columns)


def _factors(side: Tensor, ties: Tensor, rows: Tensor, room: _Room, multiple: int = 1) -> Tensor:
    """(padded rows, dim + DIMENSIONS): rows of a side with their tie vectors; zeros as padding."""
    dim = side.shape[1]
    result = room.shaped(-(-len(rows) // multiple) * multiple, dim + ties.shape[1])
    torch.index_select(side, 0, rows, out=result[: len(rows), :dim])
    result[: len(rows), dim:] = as_dimensions(ties[rows])
    result[len(rows) :] = 0.0
    return result


def _best(cells: Tensor, width: int) -> Tensor:
    """(rows, width) int64: the columns of the largest cells of each row, in no order.

    They are in the groups with the largest maxima. A group has cells a stride apart.
    """
    count = cells.shape[1] // GROUP
    if count < width:
        return cells.topk(width, dim=1, sorted=False).indices
    groups = cells.view(len(cells), GROUP, count)
    near = groups.amax(1).topk(width, dim=1, sorted=False).indices
    inside = groups.gather(2, near.unsqueeze(1).expand(-1, GROUP, -1)).flatten(1)
    which = inside.topk(width, dim=1, sorted=False).indices
    return near.gather(1, which % width) + which // width * count


@dataclass(frozen=True, slots=True, eq=False)
class _Lists:
    """The rows of a side, list after list; rows of zeros are in the last list."""

    members: Tensor  # (rows,) int64
    offsets: Tensor  # (lists + 1,) int64

    @classmethod
    def of(cls, rows: Tensor, centers: Tensor) -> _Lists:
        labels = _labels(rows, centers)
        sizes = labels.bincount(minlength=len(centers) + 1)
        return cls(labels.argsort(stable=True), offsets_of(sizes))

    @property
    def count(self) -> int:
        return len(self.offsets) - 1

    def members_of(self, number: int) -> Tensor:
        return self.members[self.offsets[number] : self.offsets[number + 1]]

    def nearest_to(self, mean: Tensor, centers: Tensor, count: int) -> Tensor:
        """(rows,) int64: the rows of the nearest lists that together have `count` rows or more."""
        order = (centers @ mean).argsort(descending=True, stable=True)
        order = torch.cat([order, order.new_tensor([len(centers)])])  # rows of zeros
        sizes = self.offsets.diff()[order]
        taken = order[: int(torch.searchsorted(sizes.cumsum(0), count)) + 1]
        return torch.cat([self.members_of(number) for number in taken.tolist()])


def _centers(sides: Pair[Tensor], ties: Pair[Tensor], sample: int, rounds: int) -> Tensor:
    """(lists, dim): the centers. There are about as many lists as rows in a list.

    Centers are fitted to rows chosen by their keys, not by their ids.
    """
    count = isqrt(sum(map(len, sides)))
    drawn = sides.zip(ties).map(lambda side: side[0][side[1].argsort()[: sample * count // 2]])
    points = torch.cat(list(drawn))
    centers = points[:: max(1, len(points) // count)][:count].clone()
    for _ in range(rounds):
        labels = _labels(points, centers)
        sums = torch.zeros(len(centers) + 1, centers.shape[1]).index_add_(0, labels, points)[:-1]
        # The center of an empty list stays where it is.
        centers = torch.where(sums.any(1, keepdim=True), normalize(sums, dim=1), centers)
    return centers


def _labels(rows: Tensor, centers: Tensor) -> Tensor:
    """(rows,) int64: the list of each row, that of the nearest center; the last for zeros."""
    labels = torch.cat([(part @ centers.T).argmax(1) for part in _parts(rows, ROWS_AT_ONCE)])
    return torch.where(rows.any(1), labels, len(centers))


def _parts(rows: Tensor, most: int) -> Sequence[Tensor]:
    """The rows in parts of at most `most` rows; one row at least."""
    return torch.split(rows, max(1, most))
