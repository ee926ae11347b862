"""`Shards`: the rows of a value, in parts that an engine holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from clusterea.engines import Engine, Ref
from clusterea.numerics.rows import bounds
from clusterea.types import Pair

if TYPE_CHECKING:
    from torch import Tensor

ROWS_OF_SHARD = 1 << 18  # where the user gives no number of shards


@dataclass(frozen=True, slots=True, eq=False)
class Shards:
    """Parts of consecutive rows: shard i has the rows from `bounds[i]` to `bounds[i + 1]`."""

    bounds: list[int]
    refs: list[Ref]
    one: Ref | None = None  # all rows in one piece, if the shards are parts of it

    @property
    def parts(self) -> list[Ref]:
        """All rows in as few pieces as there are."""
        return self.refs if self.one is None else [self.one]

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

    def masks(self, engine: Engine, masks: Pair[Tensor] | None) -> list[Pair[Any] | None]:
        """For each shard, its part of a mask of the rows, and the whole mask of the columns."""
        if masks is None:
            return [None] * len(self)
        columns = engine.put(masks.target)
        return [Pair(masks.source[start:stop], columns) for start, stop in self.ranges()]


def results_of(
    engine: Engine, unit: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]
) -> Iterator[Any]:
    """The results of a unit for each tuple of arguments. Here, one after the other."""
    if engine.is_here:
        for each in arguments:
            yield engine.get([engine.submit(unit, *each)])[0]
        return
    refs: list[Ref] = [engine.submit(unit, *each) for each in arguments]
    for number in range(len(refs)):
        yield engine.get([refs[number]])[0]
        refs[number] = None  # frees it


def cut(size: int, engine: Engine, rows: int | None = None) -> list[int]:
    """Where the shards of `size` rows begin, and where the last one ends.

    There are as many as the engine has. If it has no number of them, a shard has `rows` rows, by
    default `ROWS_OF_SHARD`.
    """
    return bounds(size, engine.shards or -(-size // (rows or ROWS_OF_SHARD)))
