"""`confidence`: how sure a link is, from its score and the scores of its rivals."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.matching.cells import Cells


def confidence(cells: Cells, chosen: Cells) -> Tensor:
    """(chosen,) float32 in [0, 1]: the geometric mean of each link's share in its row and column.

    A link's share in its row is w / (w + r), where w is its score and r the best other score in the
    row, both less the least score of all cells. So it is 1 without a rival above the least score,
    and 1/2 if the best rival has the same score. It is not a probability.

    Args:
        cells: All that could be chosen.
        chosen: Some of them.
    """
    if not len(cells):
        return chosen.values.float()
    least = cells.values.min().double()  # in float32 a difference of scores could overflow
    worth = chosen.values.double() - least
    source, target = (
        _share(worth, _rivals(cells, chosen, owners, firsts).double() - least)
        for owners, firsts in zip(cells.ends.zip(chosen.ends), cells.firsts(), strict=True)
    )
    return (source * target).sqrt().float()


def _share(worth: Tensor, rival: Tensor) -> Tensor:
    total = worth + rival
    return torch.where(total > 0, worth / total, 0.5)


def _rivals(cells: Cells, chosen: Cells, owners: tuple[Tensor, Tensor], firsts: Tensor) -> Tensor:
    """(chosen,): the highest other score of each chosen cell's entity; the least of all if none.

    Args:
        cells: All that could be chosen.
        chosen: Some of them.
        owners: The entities of one side, of all cells and of the chosen ones.
        firsts: (entities,): the position of each one's first cell.
    """
    owner, chosen_owner = owners
    others = cells.values.index_fill(0, firsts[firsts >= 0], -torch.inf)
    second = cells.values.min().expand(firsts.numel()).clone()
    second.scatter_reduce_(0, owner, others, "amax")
    first = firsts[chosen_owner]
    itself = (cells.ends.source[first] == chosen.ends.source) & (
        cells.ends.target[first] == chosen.ends.target
    )
    return torch.where(itself, second[chosen_owner], cells.values[first])
