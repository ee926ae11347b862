"""`Shards`: the rows of a value, in parts that an engine holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from clusterea.engines import Engine, Ref
from clusterea.numerics.rows import bounds

ROWS_OF_SHARD = 1 << 18  # where the user gives no number of shards


@dataclass(frozen=True, slots=True, eq=False)
class Shards:
    """Parts of consecutive rows: shard i has the rows from `bounds[i]` to `bounds[i + 1]`."""

    bounds: list[int]
    refs: list[Ref]

    def ranges(self) -> list[tuple[int, int]]:
        """The first row of each shard, and the one after its last row."""
        return list(pairwise(self.bounds))

    def __len__(self) -> int:
        return len(self.refs)

    @property
    def num_rows(self) -> int:
        return self.bounds[-1]

    def map(self, engine: Engine, unit: Callable[..., Any], *arguments: Any) -> Shards:
        """The results of a unit for each shard, which is its first argument."""
        return Shards(self.bounds, [engine.submit(unit, ref, *arguments) for ref in self.refs])


def cut(size: int, engine: Engine, rows: int | None = None) -> list[int]:
    """Where the shards of `size` rows begin, and where the last one ends.

    There are as many as the engine has. If it has no number of them, a shard has `rows` rows, by
    default `ROWS_OF_SHARD`.
    """
    return bounds(size, engine.shards or -(-size // (rows or ROWS_OF_SHARD)))
