"""Support against a loop over edges and partners, and what it does to a plan."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from clusterea.errors import InputError
from clusterea.fusion.support import (
    Agreement,
    Partners,
    agreement_of,
    kind_totals,
    kinds_met,
    pair_evidence,
)
from clusterea.graph.labeled_edges import LabeledEdges
from clusterea.numerics.block_sizes import BLOCK_SIZES
from clusterea.sharded import fuse
from clusterea.types import IntArray, KnowledgeGraph, Pair, Similarity
from dense_fusion import ALL_CANDIDATES, Problem, cells_of, problem, quick, renumbered
from small_graphs import graph, knowledge_graphs, labeled_edges, random_pair
from whole_runs import supported

CPU = torch.device("cpu")
CONFIG = quick()
SHARED = CONFIG.support_shared
Links = dict[int, tuple[int, float]]  # source entity → target entity, how sure
gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


# -- slow twins ----------------------------------------------------------------------------------


def slow_agreement(graphs: Pair[KnowledgeGraph], links: Links) -> dict[tuple[int, int], float]:
    """How much two kinds go together."""
    back = {target: (source, sure) for source, (target, sure) in links.items()}
    source, target = graphs.map(labeled_edges)
    met: dict[tuple[int, int], float] = {}
    mine: dict[int, float] = {}
    theirs: dict[int, float] = {}
    for i, kind, p in source:
        if i in links and p in links:
            weight = links[i][1] * links[p][1]
            mine[kind] = mine.get(kind, 0) + weight
            for j, other, q in target:
                if (j, q) == (links[i][0], links[p][0]):
                    met[kind, other] = met.get((kind, other), 0) + weight
    for j, other, q in target:
        if j in back and q in back:
            theirs[other] = theirs.get(other, 0) + back[j][1] * back[q][1]
    return {
        (kind, other): count / max(math.sqrt(mine[kind] * theirs[other]), SHARED)
        for (kind, other), count in met.items()
    }


def slow_support(graphs: Pair[KnowledgeGraph], links: Links, i: int, j: int) -> float:
    agreement = slow_agreement(graphs, links)
    source, target = graphs.map(labeled_edges)
    total = 0.0
    for entity, kind, p in source:
        for other_entity, other, q in target:
            if (entity, other_entity) == (i, j) and p in links and links[p][0] == q:
                here = sum(edge[1:] == (kind, p) for edge in source)
                there = sum(edge[1:] == (other, q) for edge in target)
                total += links[p][1] * agreement.get((kind, other), 0) / max(here, there)
    return total


def slow_partners(cells: dict[tuple[int, int], float], seeds: IntArray) -> Links:
    """Seeds, and pairs that are better than all other pairs of their entities."""
    links: Links = {int(source): (int(target), 1.0) for source, target in seeds}
    for (i, j), value in cells.items():
        rivals = [v for (a, b), v in cells.items() if (a == i) != (b == j)]
        if all(value > rival for rival in rivals):
            links[i] = (j, value)
    return links


def slow_supported(
    plan: dict[tuple[int, int], float],
    graphs: Pair[KnowledgeGraph],
    seeds: IntArray,
    rounds: int,
    weight: float,
    sinkhorn_rounds: int,
) -> dict[tuple[int, int], float]:
    if not rounds or not weight:
        return plan
    rows, columns = {i for i, _ in plan}, {j for _, j in plan}
    left = {i: max(1 - sum(v for (a, _), v in plan.items() if a == i), 1e-3) for i in rows}
    right = {j: max(1 - sum(v for (_, b), v in plan.items() if b == j), 1e-3) for j in columns}
    seen = {pair for pair, value in plan.items() if value > CONFIG.support_faint}
    now = {pair: plan[pair] for pair in seen}
    for _ in range(rounds):
        links = slow_partners(now, seeds)
        kernel = {
            (i, j): value * (1 + slow_support(graphs, links, i, j) / CONFIG.support_unit) ** weight
            if value > 1e-3
            else value
            for (i, j), value in plan.items()
        }

        def scaled(
            cells: dict[tuple[int, int], float], v: dict[int, float]
        ) -> tuple[dict[int, float], dict[int, float]]:
            u = {
                i: 1 / (sum(k * v[b] for (a, b), k in cells.items() if a == i) + left[i])
                for i in rows
            }
            return u, {
                j: 1 / (sum(k * u[a] for (a, b), k in cells.items() if b == j) + right[j])
                for j in columns
            }

        u, v = dict.fromkeys(rows, 1.0), dict.fromkeys(columns, 1.0)
        for _ in range(sinkhorn_rounds if seen else 0):
            u, v = scaled({pair: kernel[pair] for pair in seen}, v)
        now = {(i, j): kernel[i, j] * u[i] * v[j] for i, j in seen}
    u, v = scaled(kernel, v)  # with what was too faint before
    return {(i, j): k * u[i] * v[j] for (i, j), k in kernel.items()}


# -- problems ------------------------------------------------------------------------------------


def plan_of(
    rng: np.random.Generator, sizes: Pair[int], share: float = 0.5, most: float = 0.9
) -> Similarity:
    """Some cells whose sums are `most` at the most, and a third of them next to nothing."""
    dense = rng.random(tuple(sizes)) ** 3
    dense[rng.random(tuple(sizes)) < 0.3] *= 10.0 ** rng.integers(-8, -4)
    dense *= most / max(dense.sum(0).max(initial=1e-9), dense.sum(1).max(initial=1e-9))
    kept = rng.random(tuple(sizes)) < share
    offsets = np.concatenate([[0], kept.sum(1).cumsum()])
    return Similarity(
        torch.from_numpy(offsets),
        torch.from_numpy(kept.nonzero()[1]),
        torch.from_numpy(dense[kept]).float(),
        sizes,
    )


def free(size: int, taken: IntArray) -> Tensor:
    return torch.from_numpy(np.setdiff1d(np.arange(size), taken))


def agreement(edges: Pair[LabeledEdges], partners: Partners, parts: int = 1) -> Agreement:
    """The agreement of kinds, counted in so many parts."""
    matched = (partners.of_source >= 0).nonzero().flatten()
    met = [kinds_met(part, edges, partners) for part in torch.tensor_split(matched, parts)]
    totals = edges.zip(partners.sure).map(lambda side: kind_totals(*side))
    return agreement_of(met, totals, SHARED)


def by_entity(plan: Similarity, entities: Pair[Tensor]) -> dict[tuple[int, int], float]:
    return {
        (int(entities.source[i]), int(entities.target[j])): value
        for (i, j), value in cells_of(plan).items()
    }


@st.composite
def situations(draw: st.DrawFn) -> tuple[Pair[KnowledgeGraph], IntArray, int]:
    graphs = Pair(draw(knowledge_graphs()), draw(knowledge_graphs()))
    most = min(side.num_entities for side in graphs)
    count = draw(st.integers(0, most))
    ends = [draw(st.permutations(range(side.num_entities)))[:count] for side in graphs]
    return graphs, np.array(ends, dtype=np.int64).T.reshape(-1, 2), draw(st.integers(0, 99))


# -- tests ---------------------------------------------------------------------------------------


class TestSupport:
    @given(situations())
    @settings(max_examples=60)
    def test_twin(self, given: tuple[Pair[KnowledgeGraph], IntArray, int]) -> None:
        graphs, links, seed = given
        rng = np.random.default_rng(seed)
        sure = rng.random(len(links)) * 10.0 ** -rng.integers(0, 3)
        known = {int(i): (int(j), float(w)) for (i, j), w in zip(links, sure, strict=True)}
        sizes = graphs.map(lambda side: side.num_entities)
        partner = torch.full((sizes.source,), -1)
        weights = sizes.map(lambda size: torch.zeros(size, dtype=torch.float64))
        for i, (j, w) in known.items():
            partner[i], weights.source[i], weights.target[j] = j, w, w
        every = torch.cartesian_prod(torch.arange(sizes.source), torch.arange(sizes.target))
        edges = graphs.map(lambda side: LabeledEdges.of(side, CPU))
        partners = Partners(partner, weights)
        pairs = Pair(every[:, 0], every[:, 1])
        found = pair_evidence(pairs, edges, partners, agreement(edges, partners))
        wanted = [slow_support(graphs, known, i, j) for i, j in every.tolist()]
        assert found.tolist() == pytest.approx(wanted, abs=1e-5)  # sums of tiny shares, to 2^-30

    def test_slabs_do_not_show(self, monkeypatch: pytest.MonkeyPatch) -> None:
        graphs = random_pair(0)
        edges = graphs.map(lambda side: LabeledEdges.of(side, CPU))
        sure = torch.from_numpy(np.random.default_rng(0).random(30))
        partners = Partners(torch.arange(30).flip(0), Pair(sure, sure.flip(0)))
        every = torch.cartesian_prod(torch.arange(30), torch.arange(30))
        pairs = Pair(every[:, 0], every[:, 1])
        agree = agreement(edges, partners)
        whole = pair_evidence(pairs, edges, partners, agree)
        assert whole.count_nonzero() > 100
        monkeypatch.setitem(BLOCK_SIZES, "evidence", {"cpu": 7})
        assert torch.equal(pair_evidence(pairs, edges, partners, agree), whole)
        assert torch.equal(agreement(edges, partners).values, agree.values)


class TestSupported:
    @given(
        situations(),
        st.integers(0, 3),
        st.sampled_from([0.0, 0.5, 2.0]),
        st.sampled_from([0.9, 1.0, 1.3]),
    )
    @settings(max_examples=60, deadline=None)
    def test_twin(
        self,
        given: tuple[Pair[KnowledgeGraph], IntArray, int],
        rounds: int,
        weight: float,
        most: float,
    ) -> None:
        graphs, seeds, seed = given
        entities = Pair(*(free(side.num_entities, seeds[:, at]) for at, side in enumerate(graphs)))
        plan = plan_of(np.random.default_rng(seed), entities.map(len), most=most)
        config = quick(support_rounds=rounds, support_weight=weight)
        found = by_entity(supported(plan, entities, graphs, seeds, config), entities)
        wanted = slow_supported(
            by_entity(plan, entities), graphs, seeds, rounds, weight, config.sinkhorn_rounds
        )
        assert found == pytest.approx(wanted, rel=1e-4, abs=1e-9)

    @pytest.mark.parametrize("off", [{"support_weight": 0.0}, {"support_rounds": 0}])
    def test_it_can_be_turned_off(self, off: dict[str, Any]) -> None:
        plan, graphs = plan_of(np.random.default_rng(0), Pair(30, 30)), random_pair(1)
        entities = Pair(torch.arange(30), torch.arange(30))
        config = replace(quick(support_rounds=2), **off)
        none = np.zeros((0, 2), dtype=np.int64)
        assert supported(plan, entities, graphs, none, config) is plan

    def test_without_support_a_plan_stays(self) -> None:
        """One that Sinkhorn has brought to its end, and graphs that nothing joins."""
        given = problem(2, samplers=0)
        apart = given.embeddings.map(lambda side: graph([], len(side), 1))
        config = quick(**ALL_CANDIDATES, csls=False, sinkhorn_rounds=300)
        plain = cells_of(given.fuse(config))
        config = replace(config, views=("support",))
        silent = cells_of(
            fuse([given.embeddings], [], given.seeds, given.keys, config, graphs=apart)
        )
        assert silent == pytest.approx(plain, abs=1e-3)

    def test_faint_cells_gain_no_more_than_there_is(self) -> None:
        """Row i loses column i to row n + i, and column n + i that row: faint cells are left."""
        size = 10
        sure = torch.eye(size) * 0.9995
        faint = torch.full((size, size), 9e-7)
        dense = torch.cat([torch.cat([sure, faint], 1), torch.cat([sure * 0.002, sure], 1)])
        present = dense > 0
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), present.sum(1).cumsum(0)])
        plan = Similarity(offsets, present.nonzero()[:, 1], dense[present], Pair(*dense.shape))
        # Row n + i and column i have a neighbor each, which a seed joins.
        seeded = np.arange(2 * size, 3 * size)
        shared = (2 * size, 0, 2 * size + 1)  # from which it shows that the relations agree
        lower = [shared, *((size + i, 0, 2 * size + i) for i in range(size))]
        upper = [shared, *((i, 0, 2 * size + i) for i in range(size))]
        graphs = Pair(graph(lower, 3 * size, 1), graph(upper, 3 * size, 1))
        entities = Pair(torch.arange(2 * size), torch.arange(2 * size))
        config = quick(support_rounds=2, support_weight=12.0, sinkhorn_rounds=50)
        found = supported(plan, entities, graphs, np.stack([seeded, seeded], 1), config)
        assert cells_of(found)[size, 0] > 0.9 > 0.1 > cells_of(found)[0, 0]
        columns = torch.zeros(2 * size).index_add(0, found.columns, found.values)
        assert columns.max() <= 1 + 1e-5

    def test_neighbors_decide_between_equals(self) -> None:
        """Sources 1, 2 look alike, as do targets 1, 2; only 1 is a neighbor of the seed's ends."""
        graphs = Pair(graph([(1, 0, 0)], 3, 1), graph([(1, 0, 0)], 3, 1))
        alike = torch.full((4,), 0.45)
        plan = Similarity(torch.tensor([0, 2, 4]), torch.tensor([0, 1, 0, 1]), alike, Pair(2, 2))
        entities = Pair(torch.tensor([1, 2]), torch.tensor([1, 2]))
        seeds = np.array([[0, 0]])
        config = quick(support_rounds=1, sinkhorn_rounds=50)
        # No two partners are joined yet, so no relation is known to agree with any.
        assert len(set(supported(plan, entities, graphs, seeds, config).values.tolist())) == 1
        likely = replace(plan, values=torch.tensor([0.451, 0.44, 0.44, 0.45]))
        found = supported(likely, entities, graphs, seeds, config).values
        assert found[0] > 0.9
        assert found[1:3].max() < 0.05

    def test_nothing_there(self) -> None:
        graphs = random_pair(0, entities=4, triples=6)
        plan = Similarity(torch.zeros(5, dtype=torch.int64), torch.zeros(0, dtype=torch.int64),
                          torch.zeros(0), Pair(4, 4))  # fmt: skip
        entities = Pair(torch.arange(4), torch.arange(4))
        found = supported(
            plan, entities, graphs, np.zeros((0, 2), dtype=np.int64), quick(support_rounds=2)
        )
        assert found.num_cells == 0


SUPPORTED: dict[str, Any] = {"views": ("support",), "outside": "neighbors", "csls": False}


class TestFuse:
    def fused(self, given: Problem, graphs: Pair[KnowledgeGraph]) -> dict[tuple[int, int], float]:
        return cells_of(
            fuse(given.encodings, [], given.seeds, given.keys, quick(**SUPPORTED), graphs=graphs)
        )

    @pytest.mark.parametrize("distinct", [None, 20, 1])
    def test_no_numbering_shows(self, distinct: int | None) -> None:
        given, graphs = (
            problem(5, (60, 60), distinct=distinct, samplers=0),
            random_pair(2, entities=60, triples=300),
        )
        cells = self.fused(given, graphs)
        rng = np.random.default_rng(0)
        new = Pair(rng.permutation(60), rng.permutation(60))
        old = new.map(np.argsort)
        relations = Pair(rng.permutation(4), rng.permutation(4))

        def moved(side: tuple[tuple[KnowledgeGraph, IntArray], IntArray]) -> KnowledgeGraph:
            (some, names), kinds = side
            head, relation, tail = some.triples.T
            triples = np.stack([names[head], kinds[relation], names[tail]], 1)
            return replace(some, triples=rng.permutation(triples))

        others = graphs.zip(new).zip(relations).map(moved)
        assert cells == {
            (int(old.source[i]), int(old.target[j])): value
            for (i, j), value in self.fused(renumbered(given, new), others).items()
        }

    def test_graphs_must_be_given(self) -> None:
        given = problem(1, samplers=0)
        with pytest.raises(InputError, match="the view 'support' needs the graphs"):
            given.fuse(quick(**SUPPORTED))

    @gpu
    @pytest.mark.gpu
    def test_a_gpu_finds_the_same(self) -> None:
        graphs = random_pair(3, entities=200, relations=6, triples=2000)
        seeds = np.stack([np.arange(40)] * 2, 1)
        entities = Pair(torch.arange(40, 200), torch.arange(40, 200))
        plan = plan_of(np.random.default_rng(0), Pair(160, 160), 0.2)
        config = quick(support_rounds=2)
        here = supported(plan, entities, graphs, seeds, config)
        there = supported(plan.to("cuda"), entities, graphs, seeds, config)
        torch.testing.assert_close(there.values.cpu(), here.values, rtol=1e-4, atol=1e-7)
