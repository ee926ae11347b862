"""Adds the gains of names and features to the similarity of candidates."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from clusterea.fusion.trust import Trust
from clusterea.numerics.dots import pair_dots
from clusterea.numerics.knn import Neighbors, row_dots
from clusterea.numerics.rows import Rows
from clusterea.types import Pair


def with_gains(
    found: Neighbors,
    own: Tensor,
    others: Sequence[Tensor],
    widths: Sequence[int],
    trust: Trust,
    unit: float,
) -> Neighbors:
    """The neighbors with gains in place of the weighted cosines of content, sorted again.

    The search adds cosines times a weight, which is about right. Among the candidates it found, the
    fitted gains decide.

    Args:
        found: The neighbors of some rows.
        own: (rows, dim): the vectors of these rows.
        others: All vectors of the other side, in parts.
        widths: The dimensions of each content encoder; theirs are the last ones of the vectors.
        trust: The gains.
        unit: The similarity that a gain of 1 is worth: Sinkhorn's temperature.
    """
    weights, every = content_weights(trust, unit), Rows(others)
    values = found.values.double()
    start = own.shape[1] - sum(widths)
    for encoder, width in enumerate(widths):
        stop = start + width
        if weights[encoder]:
            theirs = every.columns(start, stop)
            added = row_dots(own[:, start:stop], theirs, found.indices)
            cosines = (added / weights[encoder]).float()
            values = values - added + unit * trust.gain(encoder, cosines)
        start = stop
    best = values.float().sort(dim=1, descending=True, stable=True)
    return Neighbors(found.indices.gather(1, best.indices), best.values)


def content_weights(trust: Trust, unit: float) -> list[float]:
    """The weights of the encoders' cosines in the search: the mean slopes of their gains."""
    return [unit * trust.slope(encoder) for encoder in range(trust.num_encoders)]


def link_gains(vectors: Pair[Tensor], trust: Trust, encoder: int, links: Tensor) -> Tensor:
    """(links,) float32: the gain of each link by one content encoder."""
    rows, columns = links.cpu().T
    cosines = pair_dots(vectors.source, vectors.target, rows, columns)
    return torch.as_tensor(trust.gain(encoder, cosines), dtype=torch.float32)
