"""The global view: both directions' neighbors, a pair that both found counting twice."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from clusterea.fusion.global_view import global_view
from clusterea.types import Pair
from dense_fusion import (
    Problem,
    assert_cells,
    cells_of,
    dense_neighbors,
    problem,
    quick,
    shifted,
    view_input,
)


@pytest.mark.parametrize("candidates", [1, 5, 100])
def test_loops_agree(candidates: int) -> None:
    given, config = problem(1), quick(candidates=candidates, csls=False)
    wanted = dense_neighbors(given.cosines(), given.free(), config)
    found = global_view(view_input(given, config))
    assert_cells(found, shifted(wanted, Pair({}, {}), config))


def test_what_both_found_counts_twice() -> None:
    rows = torch.nn.functional.normalize(torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.1, 1.0]]))
    columns = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    nobody = np.empty((0, 2), dtype=np.int64)
    given = Problem(Pair(rows, columns), [], nobody, Pair(np.arange(3), np.arange(2)))
    config = quick(candidates=1, hubness_neighbors=1, csls=False)
    values = {
        (0, 0): 2.0,  # each other's nearest
        (1, 0): 1 / 1.01**0.5,
        (2, 0): 0.1 / 1.01**0.5,
        (2, 1): -0.1 / 1.01**0.5,  # the target's nearest, which has a nearer one
    }
    low = values[2, 1]
    assert cells_of(global_view(view_input(given, config))) == pytest.approx(
        {cell: (value - low) / (2 - low) for cell, value in values.items()}
    )
