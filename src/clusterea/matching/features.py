"""`link_features`: features that tell right links from wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from clusterea.graph.labeled_edges import LabeledEdges, edges_to_partners
from clusterea.matching.compared import Scores
from clusterea.numerics.segments import offsets_of, segment_sum
from clusterea.types import AlignmentTask, IntArray, Pair

Gains: TypeAlias = Callable[[Tensor], Tensor]  # of (n, 2) links: (n,)
# Each with its expected coefficient in the log odds that a link is right: means of fits to all
# links of generated pairs (`benchmarks/alignment_accuracy.py --coefficients`). Features that repeat
# others have 0.
FEATURES = {
    "score": 5.0,
    "row margin": 0.4,  # over the best other score of the row; the score itself without one
    "column margin": 0.9,
    "row best": 0.0,  # 1 where no score of the row is higher
    "column best": 0.0,
    "source degree": 0.0,  # log(1 + distinct neighbors)
    "target degree": 0.0,
    # Matched neighbors: neighbors of the source whose partner is a neighbor of the target.
    "matched neighbors": 1.8,  # log(1 + their number)
    "rare matched neighbors": 0.0,  # log(1 + the same, where those with few neighbors weigh more)
    "source share": 1.4,  # of the source's neighbors that are matched neighbors
    "target share": 1.9,
    "content": 0.25,  # gains of names and features; 0 where there are none
}


@torch.no_grad()
def link_features(
    similarity: Scores,
    links: Tensor,
    task: AlignmentTask,
    gains: Gains | None = None,
    edges: Pair[LabeledEdges] | None = None,
) -> Tensor:
    """(links, features) float32, in the order of `FEATURES`, on the links' device.

    Relations, directions and loops are ignored.

    Args:
        similarity: Scores of source × target. A link without a cell scores the least of all.
        links: (n, 2): source entity, target entity; each source once.
        task: Its graphs give the neighbors, and its seeds are partners like the links.
        gains: Gives the (n,) gains of links by names and features, if these are compared.
        edges: From `edges_of`, if they are there.
    """
    compared = similarity.compared(links)
    score, row, column = (each.float() for each in (compared.score, compared.row, compared.column))
    edges = edges or edges_of(task, links.device)
    degrees = edges.map(LabeledEdges.num_neighbors)
    own = Pair(degrees.source[links[:, 0]], degrees.target[links[:, 1]])
    partner = partners(links, task.seeds, task.num_entities.source)
    matched, rare = _matched_neighbors(links, edges, degrees, partner)
    return torch.stack(
        [
            score,
            torch.where(row.isfinite(), score - row, score),
            torch.where(column.isfinite(), score - column, score),
            (score >= row).float(),
            (score >= column).float(),
            own.source.float().log1p(),
            own.target.float().log1p(),
            matched.log1p(),
            rare.log1p(),
            matched / own.source.clamp(min=1),
            matched / own.target.clamp(min=1),
            torch.zeros_like(score) if gains is None else gains(links).to(score),
        ],
        dim=1,
    )


def edges_of(task: AlignmentTask, device: torch.device) -> Pair[LabeledEdges]:
    """The edges of both graphs, to look up neighbors."""
    return task.graphs.map(lambda graph: LabeledEdges.of(graph, device, siblings=False))


def partners(links: Tensor, seeds: IntArray, size: int) -> Tensor:
    """(source entities,): the partner by link or seed; -1 for none."""
    known = torch.tensor(seeds, device=links.device)
    partner = links.new_full((size,), -1)
    partner[links[:, 0]] = links[:, 1]
    partner[known[:, 0]] = known[:, 1]
    return partner


def has_matched_neighbors(
    links: Tensor, task: AlignmentTask, edges: Pair[LabeledEdges] | None = None
) -> Tensor:
    """(links,) bool: whether a neighbor of the one entity is the partner of one of the other.

    `edges` are those of `edges_of`, if they are there.
    """
    edges = edges or edges_of(task, links.device)
    partner = partners(links, task.seeds, task.num_entities.source)
    at, _, _ = edges_to_partners(Pair(links[:, 0], links[:, 1]), edges, partner)
    return at.bincount(minlength=len(links)) > 0


def _matched_neighbors(
    links: Tensor, edges: Pair[LabeledEdges], degrees: Pair[Tensor], partner: Tensor
) -> tuple[Tensor, Tensor]:
    """(links,) each: the number of matched neighbors, and a weighted number.

    Hubs are weak evidence, so the weight of a neighbor is
    1 / log(2 + distinct neighbors of it and its partner).
    """
    at, mine, _ = edges_to_partners(Pair(links[:, 0], links[:, 1]), edges, partner)
    size = max(edges.source.num_entities, 1)
    distinct = torch.unique(at * size + edges.source.neighbors(mine))  # over relations
    at, neighbors = distinct // size, distinct % size
    total = degrees.source[neighbors] + degrees.target[partner[neighbors]]
    counts = at.bincount(minlength=len(links))
    return counts.float(), segment_sum(1 / (2.0 + total).log(), offsets_of(counts))
