"""Candidates by a join: entities that have neighbors which are partners of each other.

An approximate search misses some nearest neighbors. Most of those that matter can be found through
the graphs: a neighbor of one entity has a known partner, and this is a neighbor of the other one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.fusion.undecided import Undecided
from clusterea.graph.distinct_neighbors import Neighbors as Adjacency
from clusterea.numerics.block_sizes import block_size
from clusterea.numerics.dots import pair_dots
from clusterea.numerics.knn import Nearest, Neighbors, with_more
from clusterea.numerics.segments import lengths, offsets_of, ranges, unordered_sum
from clusterea.numerics.ties import tie_vectors
from clusterea.types import IntArray, KnowledgeGraph, Pair


@torch.no_grad()
def with_joined(
    found: Nearest,
    entities: Undecided,
    graphs: Pair[KnowledgeGraph],
    seeds: IntArray | Tensor,
    config: FusionConfig,
) -> Nearest:
    """The nearest of the neighbors that were found and of those that a join adds.

    Partners are the seeds, and the pairs in which each is the nearest of the other. Each partner
    gives a score to the pairs of its neighbors and its partner's: 1 / √(product of their numbers),
    times the cosine of the partners. For each entity, the `search_joined` pairs of the highest sums
    are compared. Partners with a product above `search_hub` are left out: they tell little, and
    have too many pairs.

    Args:
        found: From `lists.nearest_approximate`.
        entities: Those that were searched.
        graphs: The graphs of all entities.
        seeds: (n, 2).
        config: `search_…`.
    """
    if not config.search_joined or not all(side.values.numel() for side in found):
        return found
    edges = graphs.zip(entities.entities).map(lambda side: _Edges.of(*side))
    pairs, weights = _partners(found, entities.entities, seeds)
    products = edges.source.num_neighbors[pairs[:, 0]] * edges.target.num_neighbors[pairs[:, 1]]
    is_used = (products > 0) & (products <= config.search_hub)
    pairs, weights = pairs[is_used], weights[is_used] / products[is_used].sqrt()
    ties = tie_vectors(entities.keys, config.seed)
    most = config.search_joined
    return Pair(
        _Join(found.source, edges, entities.vectors, ties, pairs, weights).neighbors(most),
        _Join(
            found.target,
            edges.swap(),
            entities.vectors.swap(),
            ties.swap(),
            pairs.flip(1),
            weights,
        ).neighbors(most),
    )


def _partners(
    found: Nearest, entities: Pair[Tensor], seeds: IntArray | Tensor
) -> tuple[Tensor, Tensor]:
    """(n, 2) and (n,) float64: pairs of entities, and their cosines; 1 for seeds."""
    nearest, values = found.source.indices[:, 0], found.source.values[:, 0]
    own = torch.arange(len(nearest))
    # Rows of zeros have a cosine of zero with every row.
    is_mutual = (found.target.indices[nearest, 0] == own) & (values > 0)
    pairs = [entities.source[own[is_mutual]], entities.target[nearest[is_mutual]]]
    known = torch.asarray(seeds, dtype=torch.int64, copy=True).reshape(-1, 2)
    weights = torch.cat([torch.ones(len(known)), values[is_mutual]]).double()
    return torch.cat([known, torch.stack(pairs, 1)]), weights


@dataclass(frozen=True, slots=True, eq=False)
class _Edges:
    """The distinct neighbors of each entity, and the rows of those that are undecided."""

    entities: Tensor  # (rows,) int64: the entity of each row
    offsets: Tensor  # (entities + 1,) int64
    others: Tensor  # (neighbors of all,) int64: entities
    row_offsets: Tensor  # (entities + 1,) int64
    rows: Tensor  # (undecided neighbors of all,) int64

    @classmethod
    def of(cls, graph: KnowledgeGraph, entities: Tensor) -> _Edges:
        found = Adjacency.of(graph)
        offsets, others = torch.from_numpy(found.offsets), torch.from_numpy(found.others)
        row_of = torch.full((graph.num_entities,), -1)
        row_of[entities] = torch.arange(len(entities))
        rows = row_of[others]
        is_row = rows >= 0
        before = offsets_of(is_row.long())  # undecided among the neighbors up to here
        return cls(entities, offsets, others, before[offsets], rows[is_row])

    @property
    def num_neighbors(self) -> Tensor:
        """(entities,) float64."""
        return lengths(self.offsets).double()


@dataclass(frozen=True, slots=True, eq=False)
class _Join:
    """What is joined for the rows of one side, which comes first in each pair."""

    found: Neighbors  # of the rows of this side
    edges: Pair[_Edges]
    vectors: Pair[Tensor]
    ties: Pair[Tensor]
    partners: Tensor  # (n, 2): entities
    weights: Tensor  # (n,) float64

    def neighbors(self, most: int) -> Neighbors:
        """The nearest, with up to `most` further pairs of each row compared."""
        own, size = self.edges.source, len(self.edges.source.offsets) - 1
        partner = torch.full((size,), -1)
        partner[self.partners[:, 0]] = self.partners[:, 1]
        weight = torch.zeros(size, dtype=torch.float64)
        weight[self.partners[:, 0]] = self.weights
        # How many pairs each entity adds to each of its neighbors.
        added = lengths(self.edges.target.row_offsets)[partner] * (partner >= 0)
        sums = offsets_of(added[own.others])[own.offsets].diff()[own.entities]
        parts = [self._compared(start, stop, partner, weight, most) for start, stop in _slabs(sums)]
        return Neighbors(
            torch.cat([each.indices for each in parts]), torch.cat([each.values for each in parts])
        )

    def _compared(
        self, start: int, stop: int, partner: Tensor, weight: Tensor, most: int
    ) -> Neighbors:
        """The same for a range of rows."""
        own, other = self.edges
        near, width = self.found.between(start, stop), len(other.entities)
        chosen = own.entities[start:stop]
        at, edges = ranges(own.offsets[chosen], lengths(own.offsets)[chosen])
        neighbors = own.others[edges]
        has_partner = partner[neighbors] >= 0
        at, neighbors = at[has_partner], neighbors[has_partner]
        ends = partner[neighbors]
        which, places = ranges(other.row_offsets[ends], lengths(other.row_offsets)[ends])
        keys, slots = torch.unique(at[which] * width + other.rows[places], return_inverse=True)
        scores = unordered_sum(weight[neighbors][which], slots, len(keys))
        known = (torch.arange(stop - start).unsqueeze(1) * width + near.indices).flatten()
        is_new = ~torch.isin(keys, known)
        keys, scores = keys[is_new], scores[is_new]
        rows = keys // width
        # By row, then by score; rows are sorted by hashes of names, which decide ties.
        order = scores.argsort(descending=True, stable=True)
        order = order[rows[order].argsort(stable=True)]
        rank = torch.arange(len(order)) - torch.searchsorted(rows, rows[order])
        order, rank = order[rank < most], rank[rank < most]
        rows, columns = rows[order], keys[order] % width
        further = torch.zeros(
            stop - start, int(rank.max()) + 1 if len(rank) else 0, dtype=torch.int64
        )
        values = torch.full(further.shape, -torch.inf)
        further[rows, rank] = columns
        source, target = self.vectors
        values[rows, rank] = pair_dots(source, target, rows + start, columns)
        ties = Pair(self.ties.source[start:stop], self.ties.target)
        return with_more(near, further, values, ties)


def _slabs(counts: Tensor) -> Iterator[tuple[int, int]]:
    """Ranges of rows with about a block of pairs each; one row at least."""
    block = block_size("joined", counts.device)
    slab = offsets_of(counts)[1:] // block
    sizes = torch.unique_consecutive(slab, return_counts=True)[1].tolist()
    start = 0
    for size in sizes:
        yield start, start + size
        start += size
