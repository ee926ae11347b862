"""The encoder `translation`: names of the source in the words of the target.

Names in two languages have few n-grams in common. But pairs that are known or probable show which
n-grams correspond, as a small bilingual dictionary: the linear map that takes the vectors of the
source's names nearest to those of their partners (ridge regression, as for bilingual word vectors:
Mikolov et al., 2013). The map is applied to all names of the source.

A pair that the map was fitted on would look right, even if it is wrong. So the pairs are cut into
parts, and each source entity of a part gets the map fitted on the other parts.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from clusterea.types import IntArray, Pair

PARTS = 5
RIDGE = 1.0  # against rows of unit length
FEWEST = 100  # pairs with names on both sides; with fewer, there is no map


@torch.no_grad()
def translate(
    names: Pair[Tensor], pairs: IntArray, device: torch.device | str = "cpu"
) -> Pair[Tensor]:
    """(entities, dim) of each side, on the host: mapped names of the source, those of the target.

    Rows are of unit length, or zeros: without a name, or if too few pairs have names.

    Args:
        names: The vectors of names: rows of unit length, or zeros.
        pairs: (n, 2): known or probable pairs, in an order that does not depend on ids.
        device: Where to compute.
    """
    known = torch.tensor(pairs)
    has_names = names.source[known[:, 0]].any(1) & names.target[known[:, 1]].any(1)
    known = known[has_names]
    if len(known) < FEWEST:
        return names.map(torch.zeros_like)
    left, right = (
        rows[ids].to(device, torch.float64) for rows, ids in zip(names, known.T, strict=True)
    )
    width = left.shape[1]
    squares, products = left.T @ left, left.T @ right
    ridge = RIDGE * torch.eye(width, dtype=torch.float64, device=device)
    whole = torch.linalg.solve(squares + ridge, products)
    result = _mapped(names.source, whole)
    for part in range(PARTS):
        own = slice(part, None, PARTS)
        mine, theirs = left[own], right[own]
        others = torch.linalg.solve(squares - mine.T @ mine + ridge, products - mine.T @ theirs)
        rows = known[own, 0]
        result[rows] = _mapped(names.source[rows], others)
    return Pair(result, names.target)


def _mapped(rows: Tensor, by: Tensor) -> Tensor:
    """The rows times the map, of unit length, on the host."""
    factor = by.float()
    parts = [
        normalize(part.to(by.device) @ factor, dim=1).cpu() for part in torch.split(rows, 1 << 16)
    ]
    return torch.cat(parts)
