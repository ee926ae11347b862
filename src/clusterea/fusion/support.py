"""`supported`: a plan of all candidates, after their neighbors have been heard.

Whether two entities are the same shows in their neighbors: if p is a neighbor of i, and q, which is
p's partner, is one of j, by relations that go together, that speaks for i and j; the more, the
fewer others p and q have by these relations. Encoders know this on average. Here it is counted for
each pair (PARIS: Suchanek et al., 2011; RefiNA: Heimann et al., 2021), from partners that the plan
itself has, and from seeds. Then the plan is scaled anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.fusion.inputs import ViewInput
from clusterea.fusion.sinkhorn_view import normalized
from clusterea.graph.labeled_edges import LabeledEdges
from clusterea.numerics.cells import masked
from clusterea.numerics.segments import lengths, unordered_sum
from clusterea.numerics.sinkhorn import SAME
from clusterea.numerics.sparse_sinkhorn import sparse_potentials, with_potentials
from clusterea.types import IntArray, KnowledgeGraph, Pair, Similarity

ASKED = 1e-3  # of a plan: pairs that have more are asked about
FAINT = 1e-6  # of a plan: cells that have less wait for the last round
LEAST_OUTSIDE = 1e-3  # that an entity has left for staying alone
LEAST_MET = 1e-3  # edges of two kinds, at a mean, from which on it shows whether they go together
NOTHING = 1e-30  # in the place of a zero, which has no logarithm
UNIT = 0.01  # of support: each doubles what a pair weighs, to the power of `support_weight`
SLAB_EDGES = {"cpu": 1 << 22, "cuda": 1 << 24}  # of the source that are looked at together


def support(given: ViewInput) -> Similarity:
    """The candidates normalized as in the view `sinkhorn`, then weighted by neighbor evidence."""
    assert given.graphs is not None  # `needs_graphs`
    plan = normalized(given)
    step = given.step("support")
    entities = given.entities
    plan = supported(plan, entities.entities, given.graphs, given.seeds, given.config, step)
    return entities.by_entity(plan)


@torch.no_grad()
def supported(
    plan: Similarity,
    entities: Pair[Tensor],
    graphs: Pair[KnowledgeGraph],
    seeds: IntArray | Tensor,
    config: FusionConfig,
    progress: Callable[[int, int], None] | None = None,
) -> Similarity:
    """The plan with each cell weighted by (1 + support / `UNIT`) ** w, and scaled anew.

    Prior chances of the cells, and of staying alone, are those of `plan` in every round; partners
    and their relations are those of the round before. What columns have sums to 1 at most.

    Args:
        plan: From Sinkhorn; by place. What a row or column leaves of 1 is its chance to stay alone.
        entities: (places,) of each side: who is there.
        graphs: Both of them.
        seeds: (n, 2): partners that are known; of none of the entities above.
        config: `support_rounds`, `support_weight` (w), and Sinkhorn's rounds.
        progress: Told after each round.
    """
    rounds, weight = config.support_rounds, config.support_weight
    if not plan.num_cells or not rounds or not weight:
        return plan
    device = plan.values.device
    num_entities = graphs.map(lambda graph: graph.num_entities)
    entity_at = entities.map(lambda side: side.to(device))
    known = torch.asarray(seeds, dtype=torch.int64, device=device, copy=True).reshape(-1, 2)
    edges = graphs.map(lambda graph: LabeledEdges.of(graph, device))
    ends = Pair(plan.rows(), plan.columns)
    alone = ends.zip(plan.num_entities).map(lambda side: _left(plan.values, *side))
    asked = (plan.values > ASKED).nonzero().flatten()
    pairs = entity_at.zip(ends).map(lambda side: side[0][side[1][asked]])
    del ends
    whole = replace(plan, values=plan.values.double().clamp(min=NOTHING).log() + SAME)
    is_seen = plan.values > FAINT
    seen = masked(whole, is_seen)
    now = replace(seen, values=plan.values[is_seen])
    asked_of_seen = (now.values > ASKED).nonzero().flatten()
    del is_seen
    for done in range(rounds):
        partners = Partners.of(now, entity_at, known, num_entities)
        gains = weight * (pair_support(pairs, edges, partners) / UNIT).log1p()
        weighed = replace(seen, values=seen.values.index_add(0, asked_of_seen, gains))
        potentials = sparse_potentials(weighed, 1.0, config.sinkhorn_rounds, alone)
        now = with_potentials(weighed, 1.0, potentials)
        if progress is not None:
            progress(done + 1, rounds)
    del now, seen, weighed
    whole.values.index_add_(0, asked, gains)
    # Whoever lost a partner may have potentials at which faint cells are faint no more.
    potentials = sparse_potentials(whole, 1.0, 1, alone, potentials)
    return with_potentials(whole, 1.0, potentials)


def _left(values: Tensor, owners: Tensor, size: int) -> Tensor:
    """(size,): an outside option, of what an entity's cells leave of 1."""
    left = (1 - unordered_sum(values, owners, size)).clamp(min=LEAST_OUTSIDE)
    return left.log() + SAME


@dataclass(frozen=True, slots=True, eq=False)
class Partners:
    """Who is thought to be whose counterpart, and how surely."""

    of_source: Tensor  # (source entities,) int64: the target entity; -1 without any
    sure: Pair[Tensor]  # (entities,) float64 of each side; 0 without any

    @classmethod
    def of(
        cls, plan: Similarity, entity_at: Pair[Tensor], seeds: Tensor, num_entities: Pair[int]
    ) -> Partners:
        """Seeds, and the pairs of which each is the other's one best."""
        values, ends = plan.values.double(), Pair(plan.rows(), plan.columns)
        is_best = torch.ones_like(values, dtype=torch.bool)
        for owners, size in ends.zip(plan.num_entities):
            is_best &= _is_only_best(values, owners, size)
        source = torch.cat([entity_at.source[ends.source[is_best]], seeds[:, 0]])
        target = torch.cat([entity_at.target[ends.target[is_best]], seeds[:, 1]])
        values = torch.cat([values[is_best].clamp(max=1), values.new_ones(len(seeds))])
        partner = source.new_full((num_entities.source,), -1)
        partner[source] = target
        sure = num_entities.map(values.new_zeros)
        sure.source[source], sure.target[target] = values, values
        return cls(partner, sure)


def _is_only_best(values: Tensor, owners: Tensor, size: int) -> Tensor:
    """(cells,) bool: which are larger than all others of their entity."""
    highest = values.new_full((size,), -torch.inf).scatter_reduce(0, owners, values, "amax")
    is_best = values == highest[owners]
    return is_best & (owners[is_best].bincount(minlength=size) == 1)[owners]


def pair_support(pairs: Pair[Tensor], edges: Pair[LabeledEdges], partners: Partners) -> Tensor:
    """(pairs,) float64: how much the neighbors of its two ends speak for each pair.

    The sum, over every two edges of its ends that lead to partners, of how sure these are, times
    how much the edges' kinds agree, over their siblings, on the side where these are more.

    Args:
        pairs: (n,) of each side: entities.
        edges: Of each side.
        partners: Whom neighbors are matched with.
    """
    agreement = _agreement(edges, partners)
    sure = partners.sure.source
    parts = [sure.new_zeros(0)]
    for slab in _slabs(pairs, edges.source):
        at, mine, theirs = _meeting(slab, edges, partners)
        siblings = torch.maximum(edges.source.siblings[mine], edges.target.siblings[theirs])
        spoken = sure[edges.source.neighbors(mine)] * agreement.of(edges, mine, theirs) / siblings
        parts.append(unordered_sum(spoken, at, len(slab.source)))
    return torch.cat(parts)


def _slabs(pairs: Pair[Tensor], edges: LabeledEdges) -> Iterator[Pair[Tensor]]:
    """The pairs, as many at a time as have about `SLAB_EDGES` source edges."""
    counts = lengths(edges.offsets)[pairs.source]
    slab = counts.cumsum(0) // SLAB_EDGES[counts.device.type]
    sizes = slab.bincount().tolist()
    return (Pair(*ends) for ends in zip(*(torch.split(side, sizes) for side in pairs), strict=True))


def _meeting(
    pairs: Pair[Tensor], edges: Pair[LabeledEdges], partners: Partners
) -> tuple[Tensor, Tensor, Tensor]:
    """(found,) each: a pair, an edge of its source and one of its target that lead to partners."""
    at, mine = edges.source.of_entities(pairs.source)
    partner = partners.of_source[edges.source.neighbors(mine)]
    has_one = (partner >= 0).nonzero().flatten()
    found, theirs = edges.target.between(pairs.target[at[has_one]], partner[has_one])
    met = has_one[found]
    return at[met], mine[met], theirs


@dataclass(frozen=True, slots=True, eq=False)
class _Agreement:
    """How much kinds of edges go together."""

    keys: Tensor  # (n,) int64, rising: source kind · target kinds + target kind
    values: Tensor  # (n,) float64 in [0, 1]

    def of(self, edges: Pair[LabeledEdges], mine: Tensor, theirs: Tensor) -> Tensor:
        """(n,) float64: that of the kinds of these edges, 0 where they never met."""
        keys = _kind_pairs(edges, mine, theirs)
        if not self.keys.numel():
            return self.values.new_zeros(len(keys))
        slots = torch.searchsorted(self.keys, keys).clamp(max=self.keys.numel() - 1)
        return torch.where(self.keys[slots] == keys, self.values[slots], 0.0)


def _agreement(edges: Pair[LabeledEdges], partners: Partners) -> _Agreement:
    """Of two kinds: edges between the same partners that have both, over a mean of each one's.

    The mean is the geometric. An edge counts as much as both its ends are sure.
    """
    matched = (partners.of_source >= 0).nonzero().flatten()
    weights = edges.zip(partners.sure).map(
        lambda side: side[1][side[0].entities()] * side[1][side[0].neighbors()]
    )
    totals = edges.zip(weights).map(
        lambda side: unordered_sum(side[1], side[0].kinds, side[0].num_kinds)
    )
    keys, counts = [], []
    for slab in _slabs(Pair(matched, partners.of_source[matched]), edges.source):
        _, mine, theirs = _meeting(slab, edges, partners)
        met, slots = torch.unique(_kind_pairs(edges, mine, theirs), return_inverse=True)
        keys.append(met)
        counts.append(unordered_sum(weights.source[mine], slots, len(met)))
    if not keys:
        return _Agreement(matched, totals.source.new_zeros(0))
    every, slots = torch.unique(torch.cat(keys), return_inverse=True)
    both = unordered_sum(torch.cat(counts), slots, len(every))
    width = max(edges.target.num_kinds, 1)
    either = totals.source[every // width] * totals.target[every % width]
    return _Agreement(every, both / either.sqrt().clamp(min=LEAST_MET))


def _kind_pairs(edges: Pair[LabeledEdges], mine: Tensor, theirs: Tensor) -> Tensor:
    """(n,) int64: the two kinds as one number."""
    width = max(edges.target.num_kinds, 1)
    return edges.source.kinds[mine] * width + edges.target.kinds[theirs]
