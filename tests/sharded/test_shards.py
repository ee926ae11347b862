"""`Shards`: ranges of rows, and units that run on each."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clusterea.engines import InMemory
from clusterea.numerics.rows import TILE
from clusterea.sharded import shards as module
from clusterea.sharded.shards import Shards, cut


def plus(rows: Tensor, number: int) -> Tensor:
    return rows + number


def test_ranges_and_sizes() -> None:
    shards = Shards([0, 3, 5], [torch.zeros(3), torch.ones(2)])
    assert len(shards) == 2
    assert shards.num_rows == 5
    assert shards.ranges() == [(0, 3), (3, 5)]


def test_a_unit_runs_on_each_shard() -> None:
    shards = Shards([0, 3, 5], [torch.zeros(3), torch.ones(2)])
    found = shards.map(InMemory(), plus, 4)
    assert found.bounds == shards.bounds
    assert torch.cat(found.refs).tolist() == [4, 4, 4, 5, 5]
    assert torch.cat(shards.refs).tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("size", "shards", "wanted"),
    [
        (0, 4, [0, 0]),
        (5, 4, [0, 5]),
        (3 * TILE, 2, [0, TILE, 3 * TILE]),
        (2 * TILE + 1, 9, [0, TILE, 2 * TILE, 2 * TILE + 1]),
        (10 * TILE, 1, [0, 10 * TILE]),
    ],
)
def test_as_many_as_asked_for_or_as_there_are_tiles(
    size: int, shards: int, wanted: list[int]
) -> None:
    assert cut(size, InMemory(shards)) == wanted


def test_without_a_number_shards_have_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_OF_SHARD", 2 * TILE)
    assert cut(0, InMemory()) == [0, 0]
    assert cut(2 * TILE, InMemory()) == [0, 2 * TILE]
    assert cut(2 * TILE + 1, InMemory()) == [0, TILE, 2 * TILE + 1]
    assert len(cut(20 * TILE, InMemory())) == 11
