"""The mean of similarities, and pairs that are put back, against a loop."""

from __future__ import annotations

import numpy as np
import torch

from clusterea.fusion import mean, restored
from clusterea.numerics.cells import from_cells
from clusterea.types import Pair, Similarity
from dense_fusion import cells_of


def similarity(seed: int, most: float = 1.0) -> Similarity:
    rng = np.random.default_rng(seed)
    cells = {(int(i), int(j)): float(most * rng.random()) for i, j in rng.integers(0, 12, (60, 2))}
    rows, columns = (torch.tensor(ids) for ids in zip(*cells, strict=True))
    return from_cells(rows, columns, torch.tensor([*cells.values()]), Pair(12, 12))


def test_mean_leaves_seeds_out() -> None:
    both = similarity(0), similarity(1)
    first, second = map(cells_of, both)
    found = cells_of(mean(both, np.array([[0, 3], [5, 5]])))
    for cell in {*first, *second}:
        if cell[0] in (0, 5) or cell[1] in (3, 5):
            assert cell not in found
        else:
            wanted = (first.get(cell, 0.0) + second.get(cell, 0.0)) / 2
            assert np.isclose(found[cell], wanted)


class TestRestored:
    def test_against_a_loop(self) -> None:
        given = similarity(0, most=0.5)
        pairs = [(0, 3), (5, 5), (11, 0)]
        taken = Pair({i for i, _ in pairs}, {j for _, j in pairs})
        before = cells_of(given)
        wanted = {
            (i, j): value
            for (i, j), value in before.items()
            if i not in taken.source and j not in taken.target
        }
        assert len(wanted) < len(before) - 3
        assert cells_of(restored(given, torch.tensor(pairs))) == wanted | dict.fromkeys(pairs, 1.0)

    def test_a_sure_rival_keeps_a_pair_as_it_is(self) -> None:
        cells = {(0, 0): 0.75, (0, 1): 0.125, (1, 3): 0.75, (2, 3): 0.125, (4, 4): 0.75}
        rows, columns = (torch.tensor(ids) for ids in zip(*cells, strict=True))
        given = from_cells(rows, columns, torch.tensor([*cells.values()]), Pair(5, 5))
        pairs = torch.tensor([[0, 1], [2, 3], [4, 4]])  # rivals (0, 0) and (1, 3); none
        assert cells_of(restored(given, pairs)) == cells | {(4, 4): 1.0}

    def test_no_pairs_change_nothing(self) -> None:
        given = similarity(0)
        assert cells_of(restored(given, torch.empty(0, 2, dtype=torch.int64))) == cells_of(given)
