"""`optimal`: the one-to-one choice with the largest total score."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching
from torch import Tensor

from clusterea.matching.cells import Cells
from clusterea.numerics.ties import mixed
from clusterea.types import IntArray

# What a link is worth at the least score of all, as a share of the range of scores: a little, so
# that nobody stays alone for nothing.
LEAST_WORTH = 1e-6


def optimal(cells: Cells) -> Cells:
    """The matching of the largest total worth: a cell's score above the least score of all cells.

    Everybody may stay alone: each source has a column of its own beside the targets, worth nothing.
    The solver sees the entities in an order that hashes of their names give, another on each side,
    so that where several matchings are best, ids have no say in which it is.

    Time grows with the square of the rows: on one core 10,500 × 100 cells take 4 s, 20,000 × 50
    take 8 s, 40,000 × 50 take 29 to 41 s.
    """
    if not len(cells):
        return cells
    # Two mixtures: with one, entities of the same name would have the same rank.
    sources = _places(cells.ends.source, mixed(cells.keys.source, cells.seed))
    targets = _places(cells.ends.target, mixed(cells.keys.target, cells.seed + 1))
    rows, columns = int(sources.max()) + 1, int(targets.max()) + 1
    values = cells.values.double().cpu().numpy()
    worth = (values - values.min()) / (np.ptp(values) or 1.0) + LEAST_WORTH
    alone = np.arange(rows)
    costs = csr_array(
        (
            np.concatenate([2 - worth, np.full(rows, 2.0)]),  # a cost of 0 would be no cell
            (np.concatenate([sources, alone]), np.concatenate([targets, columns + alone])),
        ),
        shape=(rows, columns + rows),
    )
    costs.sort_indices()
    row, column = min_weight_full_bipartite_matching(costs)
    # -1 where the source stays alone, so that no cell is at its target.
    partner = np.empty(rows, dtype=np.int64)
    partner[row] = np.where(column < columns, column, -1)
    return cells.take(torch.from_numpy(partner[sources] == targets).to(cells.values.device))


def _places(ends: Tensor, hashes: Tensor) -> IntArray:
    """(cells,): the rank of each cell's entity when those that occur are ordered by hash."""
    entities, index = torch.unique(ends, return_inverse=True)
    ranks = hashes[entities].argsort(stable=True).argsort()
    return ranks[index].cpu().numpy()
