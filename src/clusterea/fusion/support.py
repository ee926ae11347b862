"""The view `support`: Sinkhorn on all candidates, weighted by neighbor evidence.

Two entities i and j are likely the same if a neighbor of i and a neighbor of j are partners of each
other, by relations that correspond. Encoders learn this on average; here it is computed for each
pair (PARIS: Suchanek et al., 2011; RefiNA: Heimann et al., 2021). Partners are the seeds and the
mutually best pairs of the similarity itself. The weighted similarity is then normalized again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.fusion.inputs import ViewInput
from clusterea.fusion.sinkhorn_view import normalized
from clusterea.graph.labeled_edges import LabeledEdges, edges_to_partners
from clusterea.numerics.block_sizes import block_size
from clusterea.numerics.cells import masked
from clusterea.numerics.knn import OnStep
from clusterea.numerics.lookup import find_sorted
from clusterea.numerics.segments import lengths, unordered_sum
from clusterea.numerics.sinkhorn import SAME
from clusterea.numerics.sparse_sinkhorn import sparse_potentials, with_potentials
from clusterea.types import IntArray, KnowledgeGraph, Pair, Similarity

NOTHING = 1e-30  # in place of a zero, which has no logarithm


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
    progress: OnStep | None = None,
) -> Similarity:
    """The plan with each cell times (1 + evidence / `support_unit`) ** w, normalized again.

    Every round starts from the values of `plan`, and takes partners and the agreement of relations
    from the round before. Columns sum to 1 at most.

    Args:
        plan: From Sinkhorn, over the rows of `Undecided`. What a row or column leaves of 1 is its
            chance to have no partner.
        entities: (rows,) of each side: the entity of each row.
        graphs: Both of them.
        seeds: (n, 2): known partners; none of the entities above.
        config: `support_…`, where `support_weight` is w, and Sinkhorn's rounds.
        progress: Called after each round.
    """
    rounds, weight = config.support_rounds, config.support_weight
    if not plan.num_cells or not rounds or not weight:
        return plan
    device = plan.values.device
    num_entities = graphs.map(lambda graph: graph.num_entities)
    entity_of = entities.map(lambda side: side.to(device))
    known = torch.asarray(seeds, dtype=torch.int64, device=device, copy=True).reshape(-1, 2)
    edges = graphs.map(lambda graph: LabeledEdges.of(graph, device))
    ends = Pair(plan.rows(), plan.columns)
    alone = ends.zip(plan.num_entities).map(
        lambda side: _left(plan.values, *side, config.support_alone)
    )
    weighted = (plan.values > config.support_least).nonzero().flatten()
    pairs = entity_of.zip(ends).map(lambda side: side[0][side[1][weighted]])
    del ends
    whole = replace(plan, values=plan.values.double().clamp(min=NOTHING).log() + SAME)
    # All rounds but the last leave out faint cells.
    is_seen = plan.values > config.support_faint
    seen = masked(whole, is_seen)
    now = replace(seen, values=plan.values[is_seen])
    weighted_of_seen = (now.values > config.support_least).nonzero().flatten()
    del is_seen
    for done in range(rounds):
        partners = Partners.of(now, entity_of, known, num_entities)
        evidence = pair_evidence(pairs, edges, partners, config.support_shared)
        gains = weight * (evidence / config.support_unit).log1p()
        raised = replace(seen, values=seen.values.index_add(0, weighted_of_seen, gains))
        potentials = sparse_potentials(raised, 1.0, config.sinkhorn_rounds, alone)
        now = with_potentials(raised, 1.0, potentials)
        if progress is not None:
            progress(done + 1, rounds)
    del now, seen, raised
    whole.values.index_add_(0, weighted, gains)
    # If an entity has lost its partner, its faint cells may matter.
    potentials = sparse_potentials(whole, 1.0, 1, alone, potentials)
    return with_potentials(whole, 1.0, potentials)


def _left(values: Tensor, owners: Tensor, size: int, least: float) -> Tensor:
    """(size,): the outside option of each entity: 1 less the sum of its cells."""
    left = (1 - unordered_sum(values, owners, size)).clamp(min=least)
    return left.log() + SAME


@dataclass(frozen=True, slots=True, eq=False)
class Partners:
    """The likely partner of each entity, and how likely it is."""

    of_source: Tensor  # (source entities,) int64: the target entity; -1 for none
    sure: Pair[Tensor]  # (entities,) float64 of each side; 0 for none

    @classmethod
    def of(
        cls, plan: Similarity, entity_of: Pair[Tensor], seeds: Tensor, num_entities: Pair[int]
    ) -> Partners:
        """The seeds, and the pairs whose value is the only highest of both their entities."""
        values, ends = plan.values.double(), Pair(plan.rows(), plan.columns)
        is_best = torch.ones_like(values, dtype=torch.bool)
        for owners, size in ends.zip(plan.num_entities):
            is_best &= _is_only_best(values, owners, size)
        source = torch.cat([entity_of.source[ends.source[is_best]], seeds[:, 0]])
        target = torch.cat([entity_of.target[ends.target[is_best]], seeds[:, 1]])
        values = torch.cat([values[is_best].clamp(max=1), values.new_ones(len(seeds))])
        partner = source.new_full((num_entities.source,), -1)
        partner[source] = target
        sure = num_entities.map(values.new_zeros)
        sure.source[source], sure.target[target] = values, values
        return cls(partner, sure)


def _is_only_best(values: Tensor, owners: Tensor, size: int) -> Tensor:
    """(cells,) bool: whether a cell is larger than all others of its entity."""
    highest = values.new_full((size,), -torch.inf).scatter_reduce(0, owners, values, "amax")
    is_best = values == highest[owners]
    return is_best & (owners[is_best].bincount(minlength=size) == 1)[owners]


def pair_evidence(
    pairs: Pair[Tensor], edges: Pair[LabeledEdges], partners: Partners, least_shared: float
) -> Tensor:
    """(pairs,) float64: the neighbor evidence for each pair.

    A sum over every edge of the source entity and every edge of the target entity that lead to
    partners of each other: how sure these partners are, times the agreement of the edges' kinds,
    over the larger number of siblings.

    Args:
        pairs: (n,) of each side: entities.
        edges: Of each side.
        partners: The partners of neighbors.
        least_shared: `support_shared`.
    """
    agreement = _agreement(edges, partners, least_shared)
    sure = partners.sure.source
    parts = [sure.new_zeros(0)]
    for slab in _slabs(pairs, edges.source):
        at, mine, theirs = edges_to_partners(slab, edges, partners.of_source)
        siblings = torch.maximum(edges.source.siblings[mine], edges.target.siblings[theirs])
        terms = sure[edges.source.neighbors(mine)] * agreement.of(edges, mine, theirs) / siblings
        parts.append(unordered_sum(terms, at, len(slab.source)))
    return torch.cat(parts)


def _slabs(pairs: Pair[Tensor], edges: LabeledEdges) -> Iterator[Pair[Tensor]]:
    """The pairs, in parts with about a block of source edges."""
    counts = lengths(edges.offsets)[pairs.source]
    slab = counts.cumsum(0) // block_size("evidence", counts.device)
    sizes = slab.bincount().tolist()
    return (Pair(*ends) for ends in zip(*(torch.split(side, sizes) for side in pairs), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class _Agreement:
    """How far two kinds of edges, one of each graph, correspond."""

    keys: Tensor  # (n,) int64, ascending: source kind · target kinds + target kind
    values: Tensor  # (n,) float64 in [0, 1]

    def of(self, edges: Pair[LabeledEdges], mine: Tensor, theirs: Tensor) -> Tensor:
        """(n,) float64: the agreement of the kinds of these edges; 0 where none was counted."""
        keys = _kind_pairs(edges, mine, theirs)
        slots, is_there = find_sorted(self.keys, keys)
        if not len(self.keys):
            return self.values.new_zeros(len(keys))
        return torch.where(is_there, self.values[slots], 0.0)


def _agreement(edges: Pair[LabeledEdges], partners: Partners, least_shared: float) -> _Agreement:
    """For two kinds: edges between the same partners, over the geometric mean of all their edges.

    An edge is weighted by how sure its two ends are.
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
        _, mine, theirs = edges_to_partners(slab, edges, partners.of_source)
        met, slots = torch.unique(_kind_pairs(edges, mine, theirs), return_inverse=True)
        keys.append(met)
        counts.append(unordered_sum(weights.source[mine], slots, len(met)))
    if not keys:
        return _Agreement(matched, totals.source.new_zeros(0))
    every, slots = torch.unique(torch.cat(keys), return_inverse=True)
    both = unordered_sum(torch.cat(counts), slots, len(every))
    width = max(edges.target.num_kinds, 1)
    either = totals.source[every // width] * totals.target[every % width]
    return _Agreement(every, both / either.sqrt().clamp(min=least_shared))


def _kind_pairs(edges: Pair[LabeledEdges], mine: Tensor, theirs: Tensor) -> Tensor:
    """(n,) int64: the two kinds as one number."""
    width = max(edges.target.num_kinds, 1)
    return edges.source.kinds[mine] * width + edges.target.kinds[theirs]
