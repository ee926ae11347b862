"""k-means: Lloyd's algorithm with k-means++ starts and clusters of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from clusterea.numerics.balance import balanced
from clusterea.numerics.block_sizes import block_size

TRIED_ON = 20_000  # points on which several starts are compared


def kmeans(
    points: Tensor,
    num_clusters: int,
    generator: torch.Generator,
    *,
    rounds: int,
    tolerance: float,
    starts: int = 1,
    largest_share: float | None = None,
) -> Tensor:
    """(n,) int64: the cluster of each point.

    A cluster without points starts again at the point farthest from its center. If there are fewer
    distinct points than clusters, some stay empty.

    Args:
        points: (n, dim).
        num_clusters: How many clusters, at least 1.
        generator: On the host; draws the starts.
        rounds: The most rounds.
        tolerance: The last round is the one that moves the centers by no more than this, summed
            over squared distances.
        starts: How many starts are compared, on at most `TRIED_ON` points. The one with the least
            total distance continues on all points.
        largest_share: The largest cluster, as a multiple of the mean. If one is larger, more
            rounds follow, which assign points with that bound.
    """
    if len(points) == 0 or num_clusters == 1:
        return points.new_zeros(len(points), dtype=torch.int64)
    tried = points
    if starts > 1 and len(points) > TRIED_ON:
        drawn = torch.randperm(len(points), generator=generator)[:TRIED_ON]
        tried = points[drawn.to(points.device)]
    runs = (
        _lloyd(tried, _spread_out(tried, num_clusters, generator), _nearest, rounds, tolerance)
        for _ in range(starts)
    )
    _, centers, _ = min(runs, key=lambda run: float(run[2].sum()))
    labels, centers, _ = _lloyd(points, centers, _nearest, rounds, tolerance)
    if largest_share is None:
        return labels
    most = float(labels.bincount(minlength=num_clusters).max()) * num_clusters / len(points)
    if most <= largest_share:
        return labels

    def capped(points: Tensor, centers: Tensor) -> tuple[Tensor, Tensor]:
        distances = torch.cat(list(_distances(points, centers)))
        labels = balanced(-distances, largest_share)
        return labels, distances.gather(1, labels.unsqueeze(1)).squeeze(1)

    return _lloyd(points, centers, capped, rounds, tolerance)[0]


Assign = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def _lloyd(
    points: Tensor, centers: Tensor, assign: Assign, rounds: int, tolerance: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Labels, centers, and the squared distance of each point to its center."""
    labels, distances = assign(points, centers)
    for _ in range(rounds):
        moved = _means(points, labels, distances, len(centers))
        shift = float((moved - centers).square().sum())
        centers = moved
        labels, distances = assign(points, centers)
        if shift <= tolerance:
            break
    return labels, centers, distances


def _spread_out(points: Tensor, num_clusters: int, generator: torch.Generator) -> Tensor:
    """(clusters, dim): k-means++: points are drawn by squared distance to the centers so far."""
    draws = torch.rand(num_clusters, generator=generator, dtype=torch.float64).tolist()
    chosen = [int(draws[0] * len(points))]
    distances = points.new_full((len(points),), torch.inf)
    for draw in draws[1:]:
        latest = (points - points[chosen[-1]]).square_().sum(1)
        distances = torch.minimum(distances, latest)
        sums = distances.double().cumsum(0)
        # If all distances are zero, every point is equally likely.
        found = torch.searchsorted(sums, sums[-1] * draw, right=True)
        known = int(found) if float(sums[-1]) > 0 else int(draw * len(points))
        chosen.append(min(known, len(points) - 1))
    return points[chosen]


def _distances(points: Tensor, centers: Tensor) -> Iterator[Tensor]:
    """(…, clusters): squared distances, a block of points at a time."""
    lengths = centers.square().sum(1)
    for part in torch.split(points, max(1, block_size("distances", points.device) // len(centers))):
        squares = part.square().sum(1, keepdim=True)
        yield torch.addmm(lengths, part, centers.T, alpha=-2).add_(squares).clamp_(min=0)


def _nearest(points: Tensor, centers: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest center of each point, and the squared distance to it."""
    nearest = [part.min(1) for part in _distances(points, centers)]
    labels = torch.cat([part.indices for part in nearest])
    return labels, torch.cat([part.values for part in nearest])


def _means(points: Tensor, labels: Tensor, distances: Tensor, num_clusters: int) -> Tensor:
    """(clusters, dim): the mean of each cluster."""
    counts = labels.bincount(minlength=num_clusters)
    # Unlike index_add on a GPU, a product adds in a fixed order. A sparse product with so few and
    # long rows would be slow.
    members = torch.zeros(num_clusters, len(points), dtype=points.dtype, device=points.device)
    members[labels, torch.arange(len(points), device=points.device)] = 1
    centers = members @ points / counts.clamp(min=1).unsqueeze(1)
    empty = (counts == 0).nonzero().flatten()
    if len(empty):
        farthest = distances.topk(min(len(empty), len(points))).indices
        centers[empty[: len(farthest)]] = points[farthest]
    return centers
