"""Engines that cut the work, whose results are those of one shard in memory, to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from clusterea.engines import Engine, InMemory, out_of_core
from clusterea.engines.out_of_core import OutOfCore
from clusterea.numerics import lists, rows
from clusterea.training import label_propagation

TILE = 16  # of most tests: so pairs of a hundred rows have several tiles
CUTS = pytest.mark.parametrize(
    ("shards", "is_out_of_core"),
    [
        *(pytest.param(count, False, id=f"{count} in memory") for count in (2, 3, 8)),
        *(pytest.param(count, True, id=f"{count} out of core") for count in (1, 2, 3, 8)),
    ],
)


def small_tiles(patch: pytest.MonkeyPatch, tile: int = TILE) -> None:
    """Cuts rows at multiples of `tile`, and has the smallest values in files."""
    for module in (rows, lists, label_propagation):
        patch.setattr(module, "TILE", tile)
    patch.setattr(out_of_core, "SMALL", 0)


@contextmanager
def cutting(shards: int, is_out_of_core: bool, folder: Path) -> Iterator[Engine]:
    engine: Engine = OutOfCore(shards, folder) if is_out_of_core else InMemory(shards)
    with closing(engine):
        yield engine
