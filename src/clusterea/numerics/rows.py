"""`Rows`: a matrix that is held in several parts, one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

# Rows that one product of matrices takes. A product may round otherwise with another number of
# rows, or if its rows begin inside a cache line. So parts of a matrix begin at multiples of this,
# and results don't depend on how it is cut.
TILE = 1024


class Rows:
    """Reads rows of a matrix without putting its parts together."""

    def __init__(self, parts: Sequence[Tensor]) -> None:
        self.parts = list(parts)
        self._begins = [0, *accumulate(map(len, parts))]

    def __len__(self) -> int:
        return self._begins[-1]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.parts[0].shape[1]

    @property
    def device(self) -> torch.device:
        return self.parts[0].device

    @property
    def dtype(self) -> torch.dtype:
        return self.parts[0].dtype

    def whole(self) -> Tensor:
        """All rows as one tensor."""
        return self.parts[0] if len(self.parts) == 1 else torch.cat(self.parts)

    def between(self, start: int, stop: int) -> Tensor:
        """The rows from `start` to `stop`."""
        found = self._parts_between(start, stop)
        return found[0] if len(found) == 1 else torch.cat(found or [self.parts[0][:0]])

    def copy_between(self, start: int, stop: int, result: Tensor) -> None:
        """Copies the rows from `start` to `stop` into those of the result."""
        for part in self._parts_between(start, stop):
            result[: len(part)] = part.to(result.device)
            result = result[len(part) :]

    def _parts_between(self, start: int, stop: int) -> list[Tensor]:
        return [
            part[max(start - begin, 0) : max(stop - begin, 0)]
            for begin, part in zip(self._begins, self.parts, strict=False)
            if begin < stop and begin + len(part) > start
        ]

    def take(self, rows: Tensor) -> Tensor:
        """The rows with these numbers, in this order."""
        if len(self.parts) == 1:
            return self.parts[0].index_select(0, rows)
        starts = torch.tensor(self._begins[1:-1], device=rows.device)
        owner = torch.bucketize(rows, starts, right=True)
        result = self.parts[0].new_empty(len(rows), self.shape[1])
        for number, (begin, part) in enumerate(zip(self._begins, self.parts, strict=False)):
            at = (owner == number).nonzero().flatten()
            result[at] = part.index_select(0, rows[at] - begin)
        return result

    def columns(self, start: int, stop: int) -> Rows:
        """The matrix of some columns."""
        return Rows([part[:, start:stop] for part in self.parts])


def as_rows(matrix: Tensor | Rows) -> Rows:
    """The matrix as `Rows`; itself if it is one."""
    return matrix if isinstance(matrix, Rows) else Rows([matrix])


def bounds(size: int, parts: int) -> list[int]:
    """Where parts of about equal size begin, and where the last one ends: multiples of `TILE`.

    There are fewer parts if there are fewer tiles. One part may be empty if all are.
    """
    tiles = -(-size // TILE)
    count = max(1, min(parts, tiles))
    return [min(size, number * tiles // count * TILE) for number in range(count)] + [size]
