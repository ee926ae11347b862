"""The view `support`, in shards: Sinkhorn on all candidates, weighted by neighbor evidence."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.engines import Engine, Ref
from clusterea.fusion.support import (
    BestOfShard,
    Partners,
    Prior,
    agreement_of,
    alone,
    kind_totals,
    kinds_met,
    sums_of_plan,
    whole_with_gains,
    with_evidence,
)
from clusterea.graph.labeled_edges import LabeledEdges
from clusterea.numerics.knn import OnStep
from clusterea.sharded.shards import Shards, results_of
from clusterea.sharded.sinkhorn import potentials, scaled
from clusterea.types import IntArray, KnowledgeGraph, Pair


def supported(
    engine: Engine,
    plan: Shards,
    column_bounds: Sequence[int],
    entities: Pair[Tensor],
    graphs: Pair[KnowledgeGraph],
    seeds: IntArray | Tensor,
    config: FusionConfig,
    device: torch.device,
    progress: OnStep | None = None,
) -> Shards:
    """The plan with each cell times (1 + evidence / `support_unit`) ** w, normalized again.

    Every round starts from the values of `plan`, and takes partners and the agreement of relations
    from the round before. Columns sum to 1 at most.

    Args:
        engine: Runs the units.
        plan: From Sinkhorn, over the rows of `Undecided`. What a row or column leaves of 1 is its
            chance to have no partner.
        column_bounds: Where the shards of columns begin, and where the last one ends.
        entities: (rows,) of each side: the entity of each row.
        graphs: Both of them.
        seeds: (n, 2): known partners; none of the entities above.
        config: `support_…`, where `support_weight` is w, and Sinkhorn's rounds.
        device: Where to compute.
        progress: Called after each round.
    """
    rounds = config.support_rounds
    if not rounds or not config.support_weight:
        return plan
    num_entities = graphs.map(lambda graph: graph.num_entities)
    known = torch.asarray(seeds, dtype=torch.int64, device=device, copy=True).reshape(-1, 2)
    entity_of = entities.map(lambda side: side.to(device))
    held = engine.put(entity_of)
    edges = graphs.map(lambda graph: engine.submit(LabeledEdges.of, graph, device))
    options = _sums(engine, plan).map(lambda side: alone(side, config.support_alone))
    priors, now = [], []
    for ref in plan.refs:
        prior, seen = engine.submit_parts(2, Prior.of, ref, config)
        priors.append(prior)
        now.append(seen)
    begins = [start for start, _ in plan.ranges()]
    gains: list[Ref] = []
    found: Pair[Tensor] | None = None
    for done in range(rounds):
        best = results_of(engine, BestOfShard.of, ((ref,) for ref in now))
        partners = Partners.of(best, entity_of, known, num_entities)
        of_all = engine.put(partners)
        agreement = _agreement(engine, edges, partners, of_all, config, len(plan))
        raised = [
            engine.submit_parts(
                2, with_evidence, prior, start, held, edges, of_all, agreement, config
            )
            for prior, start in zip(priors, begins, strict=True)
        ]
        gains = [each[0] for each in raised]
        weighted = Shards(plan.bounds, [each[1] for each in raised])
        found = potentials(engine, weighted, column_bounds, 1.0, config.sinkhorn_rounds, options)
        now = scaled(engine, weighted, 1.0, found).refs
        if progress is not None:
            engine.get(now)
            progress(done + 1, rounds)
    del now, raised, weighted
    whole = Shards(
        plan.bounds,
        [engine.submit(whole_with_gains, *each) for each in zip(priors, gains, strict=True)],
    )
    # If an entity has lost its partner, its faint cells may matter.
    found = potentials(engine, whole, column_bounds, 1.0, 1, options, found)
    return plan if found is None else scaled(engine, whole, 1.0, found)


def _sums(engine: Engine, plan: Shards) -> Pair[Tensor]:
    """(rows,) and (columns,) float64: the sums of the cells of all shards."""
    of_rows, of_columns = [], None
    for found in results_of(engine, sums_of_plan, ((ref,) for ref in plan.refs)):
        of_rows.append(found.source)
        of_columns = found.target if of_columns is None else of_columns + found.target
    assert of_columns is not None  # there is a shard at least
    return Pair(torch.cat(of_rows), of_columns)


def _agreement(
    engine: Engine,
    edges: Pair[Ref],
    partners: Partners,
    of_all: Ref,
    config: FusionConfig,
    shards: int,
) -> Ref:
    """The agreement of kinds of edges, by the partners of the round before, which are held."""
    matched = (partners.of_source >= 0).nonzero().flatten()
    met = engine.get(
        [
            engine.submit(kinds_met, part, edges, of_all)
            for part in torch.tensor_split(matched, shards)
        ]
    )
    totals = engine.get(
        [
            engine.submit(kind_totals, edges.source, partners.sure.source),
            engine.submit(kind_totals, edges.target, partners.sure.target),
        ]
    )
    return engine.put(agreement_of(met, Pair(*totals), config.support_shared))
