"""`confidence`: how sure a link is, from its score and the scores of its rivals."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.matching.compared import Compared
from clusterea.types import Pair


def confidence(compared: Compared) -> Tensor:
    """(links,) float32 in [0, 1]: the geometric mean of each link's share in its row and column.

    A link's share in its row is w / (w + r), where w is its score and r the best other score in the
    row, both less the least score of all cells. So it is 1 without a rival above the least score,
    and 1/2 if the best rival has the same score. It is not a probability.

    Args:
        compared: The links in all cells that could be chosen.
    """
    least = compared.least.double()  # in float32 a difference of scores could overflow
    worth = compared.score.double() - least
    rivals = Pair(compared.row, compared.column).map(lambda side: side.double().clamp(min=least))
    source, target = rivals.map(lambda rival: _share(worth, rival - least))
    return (source * target).sqrt().float()


def _share(worth: Tensor, rival: Tensor) -> Tensor:
    total = worth + rival
    return torch.where(total > 0, worth / total, 0.5)
