"""Candidates by a join: entities that have neighbors which are partners of each other.

An approximate search misses some nearest neighbors. Most of those that matter can be found through
the graphs: a neighbor of one entity has a known partner, and this is a neighbor of the other one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from clusterea.graph.sorted_edges import Column, edge_blocks
from clusterea.numerics.block_sizes import block_size
from clusterea.numerics.dots import pair_dots
from clusterea.numerics.index_types import index_type
from clusterea.numerics.knn import Neighbors, with_more
from clusterea.numerics.rows import Rows
from clusterea.numerics.segments import lengths, offsets_of, ranges, unordered_sum
from clusterea.types import IntArray, KnowledgeGraph, Pair


@dataclass(frozen=True, slots=True, eq=False)
class Partners:
    """Pairs of entities whose neighbors are joined: the seeds, and mutually nearest pairs."""

    pairs: Tensor  # (n, 2) int64: entities
    weights: Tensor  # (n,) float64: of the pairs that each one adds

    @classmethod
    def of(
        cls,
        nearest: Pair[tuple[Tensor, Tensor]],
        entities: Pair[Tensor],
        seeds: IntArray | Tensor,
        edges: Pair[JoinEdges],
        most_pairs: int,
    ) -> Partners:
        """Each partner gives a score to the pairs of its neighbors and its partner's.

        The score is 1 / √(product of their numbers), times the cosine of the partners. Partners
        with a product above `most_pairs` are left out: they tell little, and have too many pairs.

        Args:
            nearest: (rows,) each: the nearest row of the other side, and its cosine.
            entities: (rows,): the entity of each row.
            seeds: (n, 2): entities; their cosine is 1.
            edges: Of each side.
            most_pairs: `search_hub`.
        """
        (near, values), (back, _) = nearest
        own = torch.arange(len(near))
        # Rows of zeros have a cosine of zero with every row.
        is_mutual = (back[near] == own) & (values > 0)
        found = [entities.source[own[is_mutual]], entities.target[near[is_mutual]]]
        known = torch.asarray(seeds, dtype=torch.int64, copy=True).reshape(-1, 2)
        weights = torch.cat([torch.ones(len(known)), values[is_mutual]]).double()
        pairs = torch.cat([known, torch.stack(found, 1)])
        products = edges.source.num_neighbors[pairs[:, 0]] * edges.target.num_neighbors[pairs[:, 1]]
        is_used = (products > 0) & (products <= most_pairs)
        return cls(pairs[is_used], weights[is_used] / products[is_used].sqrt())

    def swap(self) -> Partners:
        """The same for the other side."""
        return Partners(self.pairs.flip(1), self.weights)


@dataclass(frozen=True, slots=True, eq=False)
class JoinEdges:
    """The distinct neighbors of each entity, and the rows of those that are undecided."""

    entities: Tensor  # (rows,) int64: the entity of each row
    offsets: Tensor  # (entities + 1,) int64
    others: Tensor  # (neighbors of all,): entities, in a small type
    row_offsets: Tensor  # (entities + 1,) int64
    rows: Tensor  # (undecided neighbors of all,), in a small type

    @classmethod
    def of(cls, graph: KnowledgeGraph, entities: Tensor) -> JoinEdges:
        size, cpu = graph.num_entities, torch.device("cpu")
        node = index_type(size)
        row_of = torch.full((size,), -1)
        row_of[entities] = torch.arange(len(entities))
        degrees, undecided = (torch.zeros(size, dtype=torch.int64) for _ in range(2))
        others, rows = Column(), Column()
        ends = graph.heads, graph.tails
        for block in edge_blocks(ends, graph.relations, size, graph.num_relations, cpu):
            kept = block.is_new_pair & (block.owners != block.others)
            owners, ends_of = block.owners[kept], block.others[kept]
            row = row_of[ends_of]
            is_row = row >= 0
            degrees[block.start : block.stop] = block.counts(owners)
            undecided[block.start : block.stop] = block.counts(owners[is_row])
            others.add(ends_of, node)
            rows.add(row[is_row], node)
        return cls(
            entities,
            offsets_of(degrees),
            others.joined(node, cpu),
            offsets_of(undecided),
            rows.joined(node, cpu),
        )

    @property
    def num_neighbors(self) -> Tensor:
        """(entities,) float64."""
        return lengths(self.offsets).double()


@torch.no_grad()
def with_joined(
    found: Neighbors,
    start: int,
    own: Tensor,
    others: Sequence[Tensor],
    ties: Pair[Tensor],
    edges: Pair[JoinEdges],
    partners: Partners,
    most: int,
) -> Neighbors:
    """The nearest of the neighbors that were found and of those that a join adds.

    For each row, the `most` pairs with the highest sums of scores are compared.

    Args:
        found: Of some consecutive rows.
        start: The first of these rows.
        own: (rows, dim): their vectors.
        others: All vectors of the other side, in parts.
        ties: (rows, DIMENSIONS) and (all rows of the other side, DIMENSIONS): from `tie_vectors`.
        edges: Of this side and of the other one.
        partners: An entity of this side comes first.
        most: `search_joined`.
    """
    if not found.values.numel():
        return found
    join = _Join(found, start, edges, own, Rows(others), ties, partners)
    return join.neighbors(most)


@dataclass(frozen=True, slots=True, eq=False)
class _Join:
    """What is joined for some rows of one side, which comes first in each pair."""

    found: Neighbors
    begin: int  # the first of these rows
    edges: Pair[JoinEdges]
    own: Tensor
    others: Rows
    ties: Pair[Tensor]
    partners: Partners

    def neighbors(self, most: int) -> Neighbors:
        """The nearest, with up to `most` further pairs of each row compared."""
        size = len(self.edges.source.offsets) - 1
        partner = torch.full((size,), -1)
        partner[self.partners.pairs[:, 0]] = self.partners.pairs[:, 1]
        weight = torch.zeros(size, dtype=torch.float64)
        weight[self.partners.pairs[:, 0]] = self.partners.weights
        # How many pairs each entity adds to each of its neighbors.
        added = lengths(self.edges.target.row_offsets)[partner] * (partner >= 0)
        at, neighbors = self._neighbors(0, len(self.own))
        sums = torch.zeros(len(self.own), dtype=torch.int64)
        sums.index_add_(0, at, added[neighbors])
        del at, neighbors
        parts = [self._compared(start, stop, partner, weight, most) for start, stop in _slabs(sums)]
        return Neighbors(
            torch.cat([each.indices for each in parts]), torch.cat([each.values for each in parts])
        )

    def _neighbors(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """(neighbors,) each: an index into a range of these rows, and a neighbor of its entity."""
        own = self.edges.source
        chosen = own.entities[self.begin + start : self.begin + stop]
        begins = own.offsets[chosen]
        at, edges = ranges(begins, own.offsets[chosen + 1] - begins)
        return at, own.others[edges].long()

    def _compared(
        self, start: int, stop: int, partner: Tensor, weight: Tensor, most: int
    ) -> Neighbors:
        """The same for a range of these rows."""
        other = self.edges.target
        near, width = self.found.between(start, stop), len(other.entities)
        at, neighbors = self._neighbors(start, stop)
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
        values[rows, rank] = pair_dots(self.own, self.others, rows + start, columns)
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
