"""Groups and tiles to compare: as many as the wanted recall needs."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clusterea.numerics import near_groups as module
from clusterea.numerics.near_groups import near_groups
from clusterea.types import Pair


def clusters(rows: int, seed: int) -> Tensor:
    """Rows around 40 centers, in the order of the centers."""
    centers = torch.randn(40, 16, generator=torch.Generator().manual_seed(0))
    draw = torch.Generator().manual_seed(seed)
    of_row = torch.arange(rows) * 40 // rows
    noise = torch.randn(rows, 16, generator=draw)
    return torch.nn.functional.normalize(centers[of_row] + 0.4 * noise, dim=1)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Pair[Tensor]:
    monkeypatch.setattr(module, "GROUP", 64)
    monkeypatch.setattr(module, "TILE", 16)
    monkeypatch.setattr(module, "EXAMPLES", 500)
    return Pair(clusters(3030, 1), clusters(2021, 2))


@pytest.mark.parametrize("recall", [0.9, 0.97])
def test_the_wanted_share_of_neighbors_is_found(small: Pair[Tensor], recall: float) -> None:
    found = near_groups(small, 10, recall)
    is_compared = torch.zeros(3030, 2021, dtype=torch.bool)
    for group in range(48):
        is_compared[group * 64 : (group + 1) * 64, found(group).long()] = True
    cells = small.source @ small.target.T
    hits = torch.cat(
        [
            is_compared.gather(1, cells.topk(10, dim=1).indices).flatten(),
            is_compared.T.gather(1, cells.T.topk(10, dim=1).indices).flatten(),
        ]
    )
    assert recall - 0.02 < float(hits.float().mean()) < recall + 0.05
    assert found.share < recall
    assert found.share == pytest.approx(float(is_compared.float().mean()), abs=0.02)


def test_all_are_compared_if_all_are_to_be_found(small: Pair[Tensor]) -> None:
    noise = torch.nn.functional.normalize(
        torch.randn(3000, 8, generator=torch.Generator().manual_seed(0)), dim=1
    )
    found = near_groups(Pair(noise, noise.roll(1, 1)), 10, 1.0)
    assert found.share > 0.9
    assert len(found(46)) <= 3000
    assert int(found(0)[-1]) < 3000


def test_fewer_columns_than_neighbors(small: Pair[Tensor]) -> None:
    found = near_groups(Pair(small.source, small.target[:5]), 10, 0.9)
    assert found(0).tolist() == [0, 1, 2, 3, 4]
