"""`mutual`: pairs of entities that are each other's best."""

from __future__ import annotations

import torch

from clusterea.matching.cells import Cells, OpenCells


def mutual(cells: OpenCells) -> Cells:
    """The cells that are the first of both their entities."""
    firsts, of_targets = cells.firsts()
    partner = torch.full_like(firsts.keys.target, -1)
    partner[of_targets.ends.target] = of_targets.ends.source
    return firsts.take(partner[firsts.ends.target] == firsts.ends.source)
