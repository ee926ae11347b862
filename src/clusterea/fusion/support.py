"""The view `support`: Sinkhorn on all candidates, weighted by neighbor evidence.

Two entities i and j are likely the same if a neighbor of i and a neighbor of j are partners of each
other, by relations that correspond. Encoders learn this on average; here it is computed for each
pair (PARIS: Suchanek et al., 2011; RefiNA: Heimann et al., 2021). Partners are the seeds and the
mutually best pairs of the similarity itself. The weighted similarity is then normalized again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.graph.labeled_edges import LabeledEdges, edges_to_partners
from clusterea.numerics.block_sizes import block_size
from clusterea.numerics.cells import masked
from clusterea.numerics.lookup import find_sorted
from clusterea.numerics.segments import lengths, unordered_sum
from clusterea.numerics.sinkhorn import SAME
from clusterea.types import Pair, Similarity

NOTHING = 1e-30  # in place of a zero, which has no logarithm


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """The cells of a shard before evidence, as logarithms, and which of them take part."""

    whole: Similarity
    weighted: Tensor  # cells that get evidence
    seen: Similarity  # without faint cells, which take part in the last round only
    weighted_of_seen: Tensor

    @classmethod
    def of(cls, plan: Similarity, config: FusionConfig) -> tuple[Prior, Similarity]:
        """The prior of a plan from Sinkhorn, and the plan without its faint cells."""
        whole = replace(plan, values=plan.values.double().clamp(min=NOTHING).log() + SAME)
        is_seen = plan.values > config.support_faint
        now = masked(plan, is_seen)
        prior = cls(
            whole,
            (plan.values > config.support_least).nonzero().flatten(),
            masked(whole, is_seen),
            (now.values > config.support_least).nonzero().flatten(),
        )
        return prior, now

    def pairs(self, start: int, entities: Pair[Tensor]) -> Pair[Tensor]:
        """The entities of the cells that get evidence; `start` is the first row of the shard."""
        device = self.weighted.device
        ends = Pair(self.whole.rows() + start, self.whole.columns)
        return entities.zip(ends).map(lambda side: side[0].to(device)[side[1][self.weighted]])


def with_evidence(
    prior: Prior,
    start: int,
    entities: Pair[Tensor],
    edges: Pair[LabeledEdges],
    partners: Partners,
    agreement: Agreement,
    config: FusionConfig,
) -> tuple[Tensor, Similarity]:
    """The gains of the weighted cells of a shard, and its cells that are not faint with them.

    A cell is raised by w · log(1 + evidence / `support_unit`), where w is `support_weight`.
    """
    evidence = pair_evidence(prior.pairs(start, entities), edges, partners, agreement)
    gains = config.support_weight * (evidence / config.support_unit).log1p()
    values = prior.seen.values.index_add(0, prior.weighted_of_seen, gains)
    return gains, replace(prior.seen, values=values)


def whole_with_gains(prior: Prior, gains: Tensor) -> Similarity:
    """All cells of a shard, raised by the gains of the weighted ones."""
    return replace(prior.whole, values=prior.whole.values.index_add(0, prior.weighted, gains))


def sums_of_plan(plan: Similarity) -> Pair[Tensor]:
    """(rows,) and (all columns,) float64: the sums of a shard's cells; exact in any order."""
    ends = Pair(plan.rows(), plan.columns)
    return ends.zip(plan.num_entities).map(lambda side: unordered_sum(plan.values, *side))


def alone(sums: Tensor, least: float) -> Tensor:
    """(entities,): the outside option of each: 1 less the sum of its cells, `least` at least."""
    return (1 - sums).clamp(min=least).log() + SAME


@dataclass(frozen=True, slots=True, eq=False)
class BestOfShard:
    """The best cells of the rows of a shard, and what it has for each column."""

    columns: Tensor  # (rows,) int64: of the only highest cell; -1 for none
    values: Tensor  # (rows,) float64: of this cell
    highest: Tensor  # (all columns,) float64; -inf for none
    count: Tensor  # (all columns,) int64: cells that are as high

    @classmethod
    def of(cls, plan: Similarity) -> BestOfShard:
        values, (size, width) = plan.values.double(), plan.num_entities
        is_best = _is_only_best(values, plan.rows(), size)
        columns = plan.columns.new_full((size,), -1)
        columns[plan.rows()[is_best]] = plan.columns[is_best]
        best = values.new_zeros(size)
        best[plan.rows()[is_best]] = values[is_best]
        highest = _highest(values, plan.columns, width)
        is_high = values == highest[plan.columns]
        return cls(columns, best, highest, plan.columns[is_high].bincount(minlength=width))


@dataclass(frozen=True, slots=True, eq=False)
class Partners:
    """The likely partner of each entity, and how likely it is."""

    of_source: Tensor  # (source entities,) int64: the target entity; -1 for none
    sure: Pair[Tensor]  # (entities,) float64 of each side; 0 for none

    @classmethod
    def of(
        cls,
        shards: Iterable[BestOfShard],
        entities: Pair[Tensor],
        seeds: Tensor,
        num_entities: Pair[int],
    ) -> Partners:
        """The seeds, and the pairs whose value is the only highest of both their entities.

        Args:
            shards: The best cells of all shards, of which one is in memory at a time.
            entities: (rows,) of each side: the entity of each row.
            seeds: (n, 2): entities.
            num_entities: Of each side.
        """
        every = []
        highest = seeds.new_full((len(entities.target),), -torch.inf, dtype=torch.float64)
        count = seeds.new_zeros(len(entities.target))
        for shard in shards:
            every.append((shard.columns, shard.values))
            before, highest = highest, torch.maximum(highest, shard.highest)
            count = count * (before == highest) + shard.count * (shard.highest == highest)
        columns, values = (torch.cat(parts) for parts in zip(*every, strict=True))
        rows = (columns >= 0).nonzero().flatten()
        columns, values = columns[rows], values[rows]
        is_best = (highest[columns] == values) & (count[columns] == 1)
        source = torch.cat([entities.source[rows[is_best]], seeds[:, 0]])
        target = torch.cat([entities.target[columns[is_best]], seeds[:, 1]])
        values = torch.cat([values[is_best].clamp(max=1), values.new_ones(len(seeds))])
        partner = source.new_full((num_entities.source,), -1)
        partner[source] = target
        sure = num_entities.map(values.new_zeros)
        sure.source[source], sure.target[target] = values, values
        return cls(partner, sure)


def _is_only_best(values: Tensor, owners: Tensor, size: int) -> Tensor:
    """(cells,) bool: whether a cell is larger than all others of its entity."""
    is_best = values == _highest(values, owners, size)[owners]
    return is_best & (owners[is_best].bincount(minlength=size) == 1)[owners]


def _highest(values: Tensor, owners: Tensor, size: int) -> Tensor:
    """(size,): the highest value of each entity; -inf for none."""
    return values.new_full((size,), -torch.inf).scatter_reduce(0, owners, values, "amax")


def pair_evidence(
    pairs: Pair[Tensor], edges: Pair[LabeledEdges], partners: Partners, agreement: Agreement
) -> Tensor:
    """(pairs,) float64: the neighbor evidence for each pair.

    A sum over every edge of the source entity and every edge of the target entity that lead to
    partners of each other: how sure these partners are, times the agreement of the edges' kinds,
    over the larger number of siblings.

    Args:
        pairs: (n,) of each side: entities.
        edges: Of each side.
        partners: The partners of neighbors.
        agreement: Of the kinds of edges.
    """
    sure = partners.sure.source
    parts = [sure.new_zeros(0)]
    for slab in _slabs(pairs, edges.source):
        at, mine, theirs = edges_to_partners(slab, edges, partners.of_source)
        siblings = torch.maximum(edges.source.siblings(mine), edges.target.siblings(theirs))
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
class Agreement:
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


def kinds_met(
    pairs: Tensor, edges: Pair[LabeledEdges], partners: Partners
) -> tuple[Tensor, Tensor]:
    """(n,) each: pairs of kinds that lie between the same partners, and the weight of such edges.

    An edge is weighted by how sure its two ends are.

    Args:
        pairs: (n,): source entities that have a partner; all of them, or a part.
        edges: Of each side.
        partners: Of all entities.
    """
    own, sure = edges.source, partners.sure.source
    keys, counts = [pairs.new_empty(0)], [sure.new_empty(0)]
    for slab in _slabs(Pair(pairs, partners.of_source[pairs]), own):
        at, mine, theirs = edges_to_partners(slab, edges, partners.of_source)
        weights = sure[slab.source[at]] * sure[own.neighbors(mine)]
        met, slots = torch.unique(_kind_pairs(edges, mine, theirs), return_inverse=True)
        keys.append(met)
        counts.append(unordered_sum(weights, slots, len(met)))
    return _added(keys, counts)


def _added(keys: Sequence[Tensor], counts: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Distinct keys, ascending, and the sum of each one's counts."""
    every, slots = torch.unique(torch.cat(list(keys)), return_inverse=True)
    return every, unordered_sum(torch.cat(list(counts)), slots, len(every))


def kind_totals(edges: LabeledEdges, sure: Tensor) -> Tensor:
    """(kinds,) float64: the weight of all edges of each kind."""
    weights = sure[edges.entities()] * sure[edges.neighbors()]
    return unordered_sum(weights, edges.kinds(), edges.num_kinds)


def agreement_of(
    met: Sequence[tuple[Tensor, Tensor]], totals: Pair[Tensor], least_shared: float
) -> Agreement:
    """For two kinds: edges between the same partners, over the geometric mean of all their edges.

    Args:
        met: From `kinds_met`, in parts.
        totals: From `kind_totals`.
        least_shared: `support_shared`.
    """
    every, both = _added(*zip(*met, strict=True))
    width = max(len(totals.target), 1)
    either = totals.source[every // width] * totals.target[every % width]
    return Agreement(every, both / either.sqrt().clamp(min=least_shared))


def _kind_pairs(edges: Pair[LabeledEdges], mine: Tensor, theirs: Tensor) -> Tensor:
    """(n,) int64: the two kinds as one number."""
    width = max(edges.target.num_kinds, 1)
    return edges.source.kinds(mine) * width + edges.target.kinds(theirs)
