"""Adds the gains of names and features to the similarity of candidates."""

from __future__ import annotations

import torch
from torch import Tensor

from clusterea.fusion.trust import Trust
from clusterea.fusion.undecided import Undecided
from clusterea.numerics.dots import pair_dots
from clusterea.numerics.knn import Nearest, Neighbors, row_dots
from clusterea.types import Pair


def with_gains(found: Nearest, entities: Undecided, trust: Trust, unit: float) -> Nearest:
    """The neighbors with gains in place of the weighted cosines of content, sorted again.

    The search adds cosines times a weight, which is about right. Among the candidates it found, the
    fitted gains decide.

    Args:
        found: By the vectors of `entities`.
        entities: Whose vectors end with those of the content encoders that `trust` is about.
        trust: The gains.
        unit: The similarity that a gain of 1 is worth: Sinkhorn's temperature.
    """
    contents = entities.contents()
    weights = content_weights(trust, unit)

    def again(side: Neighbors, vectors: list[tuple[Tensor, Tensor]]) -> Neighbors:
        values = side.values.double()
        for encoder, (own, others) in enumerate(vectors):
            if weights[encoder]:
                added = row_dots(own, others, side.indices)
                cosines = (added / weights[encoder]).float()
                values = values - added + unit * trust.gain(encoder, cosines)
        best = values.float().sort(dim=1, descending=True, stable=True)
        return Neighbors(side.indices.gather(1, best.indices), best.values)

    return Pair(
        again(found.source, [(each.source, each.target) for each in contents]),
        again(found.target, [(each.target, each.source) for each in contents]),
    )


def content_weights(trust: Trust, unit: float) -> list[float]:
    """The weights of the encoders' cosines in the search: the mean slopes of their gains."""
    return [unit * trust.slope(encoder) for encoder in range(trust.num_encoders)]


def link_gains(vectors: Pair[Tensor], trust: Trust, encoder: int, links: Tensor) -> Tensor:
    """(links,) float32: the gain of each link by one content encoder."""
    rows, columns = links.cpu().T
    cosines = pair_dots(vectors.source, vectors.target, rows, columns)
    return torch.as_tensor(trust.gain(encoder, cosines), dtype=torch.float32)
