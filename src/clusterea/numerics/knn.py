"""Nearest neighbors of both directions in one pass over the blocks of the similarity matrix.

For each block, the maxima of groups of columns and of groups of rows are computed. The cells of a
group are compared only if its maximum beats the row's candidates so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import isqrt
from typing import TypeAlias

import torch
from torch import Tensor

from clusterea.numerics.block_sizes import block_size, fitting_size
from clusterea.numerics.blocks import CLOSE, block_product
from clusterea.numerics.products import has_triton, vector_type
from clusterea.numerics.rows import TILE, Rows, as_rows
from clusterea.numerics.sampled_dots import sampled_dots, suits
from clusterea.numerics.ties import DIMENSIONS, SCALE, as_dimensions
from clusterea.types import Pair

CELL_BYTES = 8  # memory for each cell of a block while its best cells are chosen
ALIGNED = {"cpu": 8, "cuda": 16}  # a product is faster where dimensions are a multiple of it
GROUP = 64  # most cells of a group; blocks are padded to a multiple of it
WHOLE = 40  # up to so many rows for each column wanted, products with all rows are faster
SPARE = 16  # cells kept beyond k, because products are rounded and contain tie vectors

OnStep: TypeAlias = Callable[[int, int], None]  # steps done, steps in all


@dataclass(frozen=True, slots=True, eq=False)
class Neighbors:
    """The nearest rows of the other side for each row, nearest first."""

    indices: Tensor  # (rows, k) int64
    values: Tensor  # (rows, k) float32: cosines, descending

    def first(self, count: int) -> Neighbors:
        """The `count` nearest of each row."""
        return Neighbors(self.indices[:, :count], self.values[:, :count])

    def between(self, start: int, stop: int) -> Neighbors:
        """Those of a range of rows."""
        return Neighbors(self.indices[start:stop], self.values[start:stop])

    def mean(self, count: int) -> Tensor:
        """(rows,): the mean of the `count` best values, or of all where there are fewer."""
        return self.values[:, :count].mean(1)


Nearest: TypeAlias = Pair[Neighbors]  # of the sources among the targets, and the other way round


@dataclass(frozen=True, slots=True, eq=False)
class BestCells:
    """Cells of each row that may be its best, in no order."""

    columns: Tensor  # (rows, width) int32
    cells: Tensor  # (rows, width) float32: products, with those of the tie vectors

    @classmethod
    def empty(cls, rows: int, width: int, device: torch.device) -> BestCells:
        """Without values."""
        return cls(
            torch.empty(rows, width, dtype=torch.int32, device=device),
            torch.empty(rows, width, device=device),
        )

    def between(self, start: int, stop: int) -> BestCells:
        """Those of a range of rows."""
        return BestCells(self.columns[start:stop], self.cells[start:stop])

    @staticmethod
    def merged(parts: Sequence[BestCells], width: int) -> BestCells:
        """The `width` best of several parts of the columns."""
        if len(parts) == 1:
            return parts[0]
        every = torch.cat([part.cells for part in parts], 1)
        best = every.topk(min(width, every.shape[1]), dim=1, sorted=False)
        columns = torch.cat([part.columns for part in parts], 1)
        return BestCells(columns.gather(1, best.indices), best.values)


@torch.no_grad()
def best_cells(
    source: Tensor | Rows,
    target: Tensor | Rows,
    width: Pair[int],
    ties: Pair[Tensor],
    *,
    device: torch.device | None = None,
    block: Pair[int] | None = None,
    block_cells: int | None = None,
    progress: OnStep | None = None,
) -> Pair[BestCells]:
    """The best cells of each source and of each target, in one pass; `rescored` orders them.

    Args:
        source: (m, dim): rows of unit length, on host or device, float32 or float16; all or some.
        target: (n, dim): likewise.
        width: How many for each source, and for each target.
        ties: (m, DIMENSIONS) and (n, DIMENSIONS) on the device: from `tie_vectors`.
        device: Where to work, and where the result will be; that of `source` if not given.
        block: Rows and columns of a block. Changes nothing but speed and memory.
        block_cells: The most cells of a block, if `block` is not given.
        progress: Called with the number of blocks done and of all blocks.
    """
    device, sides = device or as_rows(source).device, Pair(as_rows(source), as_rows(target))
    sizes = sides.map(len)
    width = Pair(min(width.source, sizes.target), min(width.target, sizes.source))
    if not width.source or not width.target:
        none = Pair(*(none_found(rows, device) for rows in sizes))
        return none.map(lambda side: BestCells(side.indices.int(), side.values))
    if sizes.source < sizes.target:
        return _best_cells(
            sides.swap(),
            width.swap(),
            ties.swap(),
            device,
            None if block is None else block.swap(),
            block_cells,
            progress,
        ).swap()
    return _best_cells(sides, width, ties, device, block, block_cells, progress)


def _best_cells(
    sides: Pair[Rows],
    width: Pair[int],
    ties: Pair[Tensor],
    device: torch.device,
    block: Pair[int] | None,
    block_cells: int | None,
    progress: OnStep | None,
) -> Pair[BestCells]:
    """The same, where the second side is the smaller one.

    Its factors stay in memory on a GPU. On a CPU they are made again for each block: that is a copy
    of 2 to 3 % of the product's time, and a shard has no memory for them.
    """
    source, target = sides
    sizes = sides.map(len)
    factors = sizes.target * (target.shape[1] + DIMENSIONS) * source.parts[0].element_size()
    kept = sizes.target * 4 * 4 * width.target + sizes.source * 4 * 2 * width.source
    beside = kept if device.type == "cpu" else kept + factors
    fitting = fitting_size("nearest", device, CELL_BYTES, beside)
    block = block or _block(sizes, min(block_cells or fitting, fitting))
    steps = block.zip(sizes).map(lambda pair: _padded(min(pair)))

    def factor(begin: int) -> Tensor:
        return extended(target, begin, steps.target, ties.target)

    if device.type != "cpu":
        factor = cache(factor)
    begins = range(0, sizes.target, steps.target)
    room = _Room.of(_padded(sizes.target), width.target, device)
    best_sources = [_Best(room.rows(begin, begin + steps.target)) for begin in begins]
    found = BestCells.empty(sizes.source, width.source, device)
    blocks = len(begins) * -(-sizes.source // steps.source)
    done = 0
    for top in range(0, sizes.source, steps.source):
        left = extended(source, top, steps.source, ties.source)
        best_targets = _Best(_Room.of(len(left), width.source, device))
        for begin, best in zip(begins, best_sources, strict=True):
            scores = block_product(left, factor(begin))
            scores[sizes.source - top :] = -torch.inf  # padding
            scores[:, sizes.target - begin :] = -torch.inf
            best_targets.offer(scores, begin)
            best.offer(scores.T, top)
            del scores  # before the next one is made
            done += 1
            if progress:
                progress(done, blocks)
        best_targets.put(found, top)
        del left, best_targets
    for best in best_sources:
        best.merge()
    del best, best_sources  # only `room` holds the memory now
    return Pair(found, room.taken(sizes.target))


class _Room:
    """Memory for the best cells of some rows, and for as many newer cells beside them."""

    def __init__(self, cells: Tensor, columns: Tensor) -> None:
        self.cells, self.columns = cells, columns  # (rows, 2 * width)

    @classmethod
    def of(cls, rows: int, width: int, device: torch.device) -> _Room:
        return cls(
            torch.full((rows, 2 * width), -torch.inf, device=device),
            torch.zeros(rows, 2 * width, dtype=torch.int32, device=device),
        )

    def rows(self, start: int, stop: int) -> _Room:
        """The memory of some rows."""
        return _Room(self.cells[start:stop], self.columns[start:stop])

    def taken(self, rows: int) -> BestCells:
        """The best cells of the first rows. The rest is freed, one tensor at a time."""
        width = self.cells.shape[1] // 2
        self.cells = self.cells[:rows, :width].contiguous()
        self.columns = self.columns[:rows, :width].contiguous()
        return BestCells(self.columns, self.cells)


class _Best:
    """The best cells of each row so far, followed by newer cells that are not merged yet."""

    def __init__(self, room: _Room) -> None:
        rows, width = room.cells.shape
        device = room.cells.device
        self.width = width // 2
        self.cells, self.columns = room.cells, room.columns
        self.every = torch.arange(rows + 1, device=device)
        self.filled = torch.zeros(rows, dtype=torch.int64, device=device)  # of the second half
        self.floor = torch.full((rows,), -torch.inf, device=device)  # cells must exceed it

    def offer(self, block: Tensor, begin: int) -> None:
        """Adds the best cells of a (rows, columns) block whose first column is `begin`."""
        rows, columns = block.shape
        group = GROUP
        while group > 1 and columns < 3 * group * self.width:
            group //= 2
        # A group has cells a stride apart, so that maxima are of whole vectors on every device.
        groups = block.view(rows, group, columns // group)
        maxima = _maxima(block, group)  # (rows, groups)
        promising = (maxima > self.floor.unsqueeze(1)).nonzero()
        if len(promising) * group > 4 * self.width * rows and maxima.shape[1] >= self.width:
            # `width` groups have a cell of at least this value.
            bound = maxima.topk(self.width, dim=1, sorted=False).values.amin(1)
            below = torch.nextafter(bound, torch.full_like(bound, -torch.inf))
            self.floor = torch.maximum(self.floor, below)
            promising = (maxima > self.floor.unsqueeze(1)).nonzero()
        limit = block_size("gathered", block.device)
        for part in promising.tensor_split(1 + len(promising) * group // limit):
            row, stride = part.unbind(1)
            cells = groups[row, :, stride]  # (part, group)
            which, member = (cells > self.floor[row].unsqueeze(1)).nonzero().unbind(1)
            columns_of = begin + member * maxima.shape[1] + stride[which]
            self._add(row[which], columns_of.int(), cells[which, member])

    def put(self, result: BestCells, begin: int) -> None:
        """Puts the best cells into the rows of a result from `begin` on, in no order."""
        self.merge()
        cells = result.cells[begin : begin + len(self.cells)]
        cells.copy_(self.cells[: len(cells), : self.width])
        columns = result.columns[begin : begin + len(self.cells)]
        columns.copy_(self.columns[: len(cells), : self.width])

    def merge(self) -> None:
        """Moves the best cells of all rows to the first half."""
        self._merge(self.filled.nonzero().flatten())

    def _add(self, rows: Tensor, columns: Tensor, cells: Tensor) -> None:
        """Stores cells behind the best of their rows; `rows` is ascending."""
        while len(rows):
            offsets = torch.searchsorted(rows, self.every)
            slots = (self.filled - offsets[:-1])[rows] + torch.arange(len(rows), device=rows.device)
            self.filled += offsets.diff()
            full = (self.filled > self.width).nonzero().flatten()
            if len(full) == 0:
                self._put(rows, slots, columns, cells)
                return
            fits = slots < self.width
            self._put(rows[fits], slots[fits], columns[fits], cells[fits])
            self._merge(full)
            late = ~fits & (cells > self.floor[rows])
            rows, columns, cells = rows[late], columns[late], cells[late]

    def _put(self, rows: Tensor, slots: Tensor, columns: Tensor, cells: Tensor) -> None:
        self.cells[rows, slots + self.width] = cells
        self.columns[rows, slots + self.width] = columns

    def _merge(self, rows: Tensor) -> None:
        """Moves the best cells of both halves of these rows to the first half."""
        best = self.cells[rows].topk(self.width, dim=1, sorted=False)
        self.columns[rows, : self.width] = self.columns[rows].gather(1, best.indices)
        self.cells[rows, : self.width] = best.values
        self.cells[rows, self.width :] = -torch.inf
        self.floor[rows] = torch.maximum(self.floor[rows], best.values.amin(1))
        self.filled[rows] = 0


def _maxima(block: Tensor, group: int) -> Tensor:
    """(rows, groups): the largest cell of each group, in the memory order of the block."""
    rows, columns = block.shape
    if block.is_contiguous():
        return block.view(rows, group, columns // group).amax(1)
    return block.T.view(group, columns // group, rows).amax(0).T


def extended(side: Rows, begin: int, count: int, ties: Tensor) -> Tensor:
    """(padded rows, dim + DIMENSIONS): some rows with their tie vectors as further dimensions.

    float16 on a GPU, float32 on a CPU.

    Args:
        side: All rows.
        begin: The first one.
        count: How many; fewer where the rows end.
        ties: (all rows, DIMENSIONS).
    """
    count, dim = min(count, len(side) - begin), side.shape[1]
    aligned = dim + DIMENSIONS + -(dim + DIMENSIONS) % ALIGNED[ties.device.type]
    kind = vector_type(ties.device)
    result = torch.empty(_padded(count), aligned, dtype=kind, device=ties.device)
    result[:, dim:] = 0
    result[count:] = 0
    side.copy_between(begin, begin + count, result[:count, :dim])
    result[:count, dim : dim + DIMENSIONS] = as_dimensions(ties[begin : begin + count])
    if not bool(result.sum(dtype=torch.float32).isfinite()):  # one of them makes the sum one
        raise ValueError("embeddings must be finite.")
    return result


def rescored(
    rows: Tensor,
    others: Tensor | Rows,
    best: BestCells,
    ties: Pair[Tensor],
    k: int,
    *,
    are_few: bool = False,
) -> Neighbors:
    """The k best of the chosen columns of each row, by their cosines in float64.

    `are_few` says that the rows are few beside the others, in all shards.
    """
    chosen = best.columns
    count, width = chosen.shape
    k = min(k, width)
    indices = torch.empty(count, k, dtype=torch.int64, device=chosen.device)
    values = torch.empty(count, k, device=chosen.device)
    wanted = _may_be_best(best.cells, k)
    cosines = row_dots(rows, others, chosen, wanted, are_few=are_few).float()
    cosines[~wanted] = -torch.inf
    for part in _chunks(count, width * DIMENSIONS, chosen.device):
        own = Pair(ties.source[part], ties.target)
        near = _best_of(chosen[part], cosines[part], own, k)
        indices[part], values[part] = near.indices, near.values
    return Neighbors(indices, values)


def _may_be_best(cells: Tensor, k: int) -> Tensor:
    """(rows, width) bool: whether a cell may be among the k best, however products were rounded."""
    if cells.is_cuda or not k:  # there, the factors are rounded too
        return torch.ones_like(cells, dtype=torch.bool)
    of_ties = DIMENSIONS * SCALE**2
    return cells >= cells.topk(k, dim=1).values[:, -1:] - 2 * (CLOSE + of_ties)


def with_more(found: Neighbors, columns: Tensor, values: Tensor, ties: Pair[Tensor]) -> Neighbors:
    """The nearest of those found and of further columns, as many as were found.

    Args:
        found: Of (rows, k).
        columns: (rows, n) int64: none that was found.
        values: (rows, n) float32: cosines; -inf stands for no column.
        ties: (rows, DIMENSIONS) and (all columns, DIMENSIONS): from `tie_vectors`.
    """
    every = torch.cat([found.indices, columns], 1), torch.cat([found.values, values], 1)
    return _best_of(*every, ties, found.indices.shape[1])


def _best_of(chosen: Tensor, cosines: Tensor, ties: Pair[Tensor], k: int) -> Neighbors:
    """The k largest cosines of each row; of equal ones, those of the larger tie products."""
    # The sum of eight products of 11-bit numbers is exact in float64, in any order.
    products = row_dots(ties.source, ties.target, chosen, are_few=True)
    order = products.argsort(1, descending=True)
    best = cosines.gather(1, order).sort(stable=True, dim=1, descending=True)
    return Neighbors(chosen.gather(1, order.gather(1, best.indices[:, :k])), best.values[:, :k])


def row_dots(
    rows: Tensor,
    others: Tensor | Rows,
    columns: Tensor,
    wanted: Tensor | None = None,
    *,
    are_few: bool = False,
) -> Tensor:
    """(rows, width): each row's products with its columns of `others`, summed in float64.

    Those that are not wanted, by a mask, may have any value. A product is the same in all shards of
    the rows if `are_few` is.
    """
    count, width = columns.shape
    others = Rows([part.to(columns.device) for part in as_rows(others).parts])
    dots = torch.empty(count, width, dtype=torch.float64, device=columns.device)
    if not width:
        return dots
    if has_triton(columns.device):
        from clusterea.numerics.dot_kernel import chosen_dots

        return chosen_dots(rows.to(columns.device), others.whole(), columns)
    # To turn a row of `others` into float64 takes about as long as a product.
    is_sampled = not are_few and suits(*others.shape, width)
    if columns.device.type == "cpu" and is_sampled:
        every = torch.ones_like(columns, dtype=torch.bool)
        return sampled_dots(rows, others, columns, every if wanted is None else wanted)
    if len(others) <= WHOLE * width:
        table = others.whole().double().T
        for part in _chunks(count, 1 + (len(others) + others.shape[1]) // 16, columns.device):
            products = rows[part].to(columns.device).double() @ table
            dots[part] = products.gather(1, columns[part].long())
        return dots
    for part in _chunks(count, width * others.shape[1], columns.device):
        near = others.take(columns[part].flatten()).view(-1, width, others.shape[1])
        row = rows[part].to(columns.device).unsqueeze(2)
        dots[part] = torch.bmm(near.double(), row.double()).squeeze(2)
    return dots


def _chunks(rows: int, numbers: int, device: torch.device) -> Iterator[slice]:
    """Slices of rows that hold about a block of numbers, with `numbers` numbers in each row.

    Their sizes divide `TILE`, or are multiples of it, so that they are the same in all shards.
    """
    step = max(1, block_size("pair products", device) // numbers)
    step = step // TILE * TILE or 1 << (step.bit_length() - 1)
    return (slice(start, start + step) for start in range(0, rows, step))


def _block(sizes: Pair[int], cells: int) -> Pair[int]:
    """Rows and columns of equal blocks with at most `cells` cells, about twice as wide as high."""
    columns = _even(sizes.target, isqrt(2 * cells))
    return Pair(_even(sizes.source, cells // columns), columns)


def _even(size: int, limit: int) -> int:
    """The step that cuts `size` into the fewest equal parts of at most `limit`."""
    return -(-size // -(-size // limit))


def _padded(size: int) -> int:
    return -(-size // GROUP) * GROUP


def none_found(rows: int, device: torch.device) -> Neighbors:
    """The result if the other side is empty."""
    empty = torch.empty(rows, 0, device=device)
    return Neighbors(empty.long(), empty)
