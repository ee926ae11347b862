"""Rivals: the number of candidates that score above a test link, or tie with it.

One pass over the cells counts both directions: a cell is a rival in its row if it reaches the score
of the row's truth, and in its column if it reaches the score of the column's truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from clusterea.numerics.block_sizes import block_size
from clusterea.types import Pair, Similarity

TIED = 1e-6  # relative difference to the truth's score that counts as a tie
FLOOR = 1e-12  # the smallest score that the difference is relative to


@dataclass(frozen=True, slots=True, eq=False)
class Rivals:
    """For each test link, the number of candidates better than the truth, and tied with it.

    `tied` includes the truth; it is 0 if the truth has no cell.
    """

    better: Tensor  # (links,) int64
    tied: Tensor  # (links,) int64

    def __getitem__(self, kept: Tensor) -> Rivals:
        """The rivals of some of the links."""
        return Rivals(self.better[kept], self.tied[kept])


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The rivals in one direction, for both candidate sets."""

    among_test: Rivals  # entities with a test link
    among_all: Rivals  # all entities without a seed


def count_rivals(
    similarity: Similarity, links: Tensor, truths: Tensor, seeds: Tensor
) -> Pair[Candidates]:
    """The rivals of each test link in its source's row, and in its target's column.

    Args:
        similarity: Its device does the counting.
        links: (links, 2), one-to-one.
        truths: (links,): the cell of each link, or -1.
        seeds: (seeds, 2): their entities are not candidates.
    """
    sides = [
        _Side(similarity, ends, truths, decided, size)
        for ends, decided, size in zip(links.T, seeds.T, similarity.num_entities, strict=True)
    ]
    source, target = sides
    for cells, rows in _chunks(similarity):
        columns, values = similarity.columns[cells], similarity.values[cells]
        source.count(values, rows, target, columns)
        target.count(values, columns, source, rows)
    return Pair(source.counted(links[:, 0]), target.counted(links[:, 1]))


class _Side:
    """For the entities of one side: scores of the truth, candidates, and counts of rivals."""

    def __init__(
        self, similarity: Similarity, ends: Tensor, truths: Tensor, seeds: Tensor, size: int
    ) -> None:
        device = similarity.values.device
        found = truths >= 0
        truth = similarity.values[truths[found]].double()
        slack = TIED * truth.abs().clamp(min=FLOOR)
        # An entity without a truth has no rivals: no score reaches infinity.
        self.least = torch.full((size,), torch.inf, dtype=torch.float64, device=device)
        self.most = self.least.clone()
        self.least[ends[found]] = truth - slack
        self.most[ends[found]] = truth + slack
        self.tested = torch.zeros(size, dtype=torch.bool, device=device)
        self.tested[ends] = True
        self.candidate = torch.ones_like(self.tested)
        self.candidate[seeds] = False
        self.candidate |= self.tested
        self.counts = torch.zeros(size * 4, dtype=torch.int64, device=device)

    def count(self, values: Tensor, owners: Tensor, others: _Side, other: Tensor) -> None:
        """Adds the cells that reach the truth of their owner, an entity of this side."""
        near = (values >= self.least.index_select(0, owners)).nonzero().flatten()
        near = near[others.candidate[other[near]]]
        owners = owners[near]
        better = values[near] > self.most[owners]
        # Four counts per entity: tied or better, each for untested and tested candidates.
        slots = owners * 4 + better * 2 + others.tested[other[near]]
        self.counts.index_add_(0, slots, torch.ones_like(slots))

    def counted(self, ends: Tensor) -> Candidates:
        """The counts of the links whose entities of this side are `ends`."""
        tied, better = self.counts.view(-1, 2, 2)[ends].unbind(1)
        return Candidates(Rivals(better[:, 1], tied[:, 1]), Rivals(better.sum(1), tied.sum(1)))


def _chunks(similarity: Similarity) -> Iterator[tuple[slice, Tensor]]:
    """Blocks of cells: their slice, and the row of each cell."""
    offsets, cells = similarity.row_offsets, similarity.num_cells
    size = block_size("rivals", offsets.device)
    starts = torch.arange(0, cells, size, device=offsets.device)
    stops = (starts + size).clamp(max=cells)
    first = torch.searchsorted(offsets, starts, right=True) - 1
    last = torch.searchsorted(offsets, stops - 1, right=True)
    for start, stop, row, end in torch.stack([starts, stops, first, last], dim=1).tolist():
        counts = offsets[row : end + 1].clamp(start, stop).diff()
        rows = torch.arange(row, end, device=offsets.device)
        yield slice(start, stop), rows.repeat_interleave(counts, output_size=stop - start)
