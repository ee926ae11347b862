"""The optimal assignment against a dense solver, and the bounds around it."""

from __future__ import annotations

import importlib

import pytest
import torch
from hypothesis import given
from scipy.optimize import linear_sum_assignment
from small_similarities import cells_of, dense_scores, links_of, open_cells_of
from torch import Tensor

from clusterea.errors import InputError
from clusterea.matching.greedy import greedy
from clusterea.matching.hungarian import hungarian
from clusterea.matching.one_to_one import one_to_one
from clusterea.matching.optimal import LEAST_WORTH, optimal


def worth(scores: Tensor) -> Tensor:
    """(rows, columns): what each cell is worth, 0 where there is none."""
    present = scores[~scores.isnan()].double()
    extent = float(present.max() - present.min()) or 1.0
    return ((scores.double() - present.min()) / extent + LEAST_WORTH).nan_to_num(0.0)


@given(dense_scores().filter(lambda scores: not bool(scores.isnan().all())))
def test_no_matching_is_worth_more(scores: Tensor) -> None:
    gains = worth(scores)
    rows, columns = linear_sum_assignment(gains.numpy(), maximize=True)
    links = links_of(optimal(cells_of(scores)))
    assert sum(float(gains[link]) for link in links) == pytest.approx(
        float(gains[rows, columns].sum())
    )
    assert all(gains[link] > 0 for link in links)
    assert len({s for s, _ in links}) == len({t for _, t in links}) == len(links)


@pytest.mark.parametrize("bound", ["MOST_CELLS", "MOST_ENTITIES"])
def test_bounds(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = open_cells_of(torch.tensor([[0.9, 0.8], [0.85, 0.1]]))
    assert links_of(one_to_one(cells)) == links_of(optimal(cells.whole()))
    for name in ("one_to_one", "hungarian"):
        monkeypatch.setattr(importlib.import_module(f"clusterea.matching.{name}"), bound, 1)
    assert links_of(one_to_one(cells)) == links_of(greedy(cells))
    with pytest.raises(InputError, match="Got 4 cells of 2. Choose 'greedy' instead"):
        hungarian(cells)
