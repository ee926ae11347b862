from __future__ import annotations

import pytest
import torch
from hypothesis import given
from small_similarities import cells_of, dense_scores, held
from torch import Tensor

from clusterea.matching.cells import Cells
from clusterea.matching.confidence import confidence


def twin(cells: Cells) -> list[float]:
    """The rule, cell by cell, as if every cell were chosen."""
    values, (sources, targets) = cells.values.tolist(), cells.ends.map(Tensor.tolist)
    least = min(values, default=0)
    result = []
    for i, value in enumerate(values):
        product = 1.0
        for ends in (sources, targets):
            others = [v for j, v in enumerate(values) if j != i and ends[j] == ends[i]]
            total = value - least + max(others, default=least) - least
            product *= (value - least) / total if total else 0.5
        result.append(product**0.5)
    return result


def confidence_of(scores: Tensor) -> Tensor:
    """Of all cells, as if every one were chosen."""
    return confidence(held(scores).compared((~scores.isnan()).nonzero()))


@given(dense_scores())
def test_every_cell_has_its_share(scores: Tensor) -> None:
    assert confidence_of(scores).tolist() == pytest.approx(twin(cells_of(scores)))


def test_huge_scores_do_not_overflow() -> None:
    scores = torch.tensor([[3e38, -3e38], [-3e38, 3e38]])
    assert confidence_of(scores).tolist() == [1.0, 0.0, 0.0, 1.0]
