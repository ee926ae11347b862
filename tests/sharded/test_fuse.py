"""`fuse` against its dense twin, with every switch, and in any numbering of the entities."""

from __future__ import annotations

import sys
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cut_engines import CUTS, cutting, small_tiles
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from clusterea.config import FusionConfig
from clusterea.engines import Engine, InMemory
from clusterea.errors import InputError
from clusterea.evaluation import evaluate
from clusterea.fusion import VIEWS
from clusterea.fusion.global_view import global_view
from clusterea.fusion.inputs import ViewInput
from clusterea.fusion.trust import Trust
from clusterea.fusion.views import View
from clusterea.sharded import HeldScores, fuse, match
from clusterea.sharded import shards as shards_module
from clusterea.sharded.search import search
from clusterea.types import (
    NO_ENTITIES,
    NO_LINKS,
    Alignment,
    IntArray,
    Metrics,
    Names,
    Pair,
    Partition,
    Similarity,
)
from dense_fusion import (
    ALL_CANDIDATES,
    Problem,
    assert_cells,
    cells_of,
    dense_fuse,
    links_renumbered,
    problem,
    quick,
    renumbered,
    with_encoders,
)
from small_graphs import random_pair

LOCAL, COSINE = ("local",), ("local-cosine",)
WITHOUT_SINKHORN = ("local-cosine", "global")
EVERY = ("local", "sinkhorn", "global")
SWITCHES: list[dict[str, Any]] = [
    {},
    {"csls": False},
    {"views": LOCAL},
    {"views": WITHOUT_SINKHORN},
    {"outside": "best"},
    {"outside": "neighbors"},
    {"csls": False, "views": LOCAL},
    {"csls": False, "views": COSINE},
    {"views": LOCAL, "outside": "neighbors"},
    {"views": ("global", "local")},
    {"sinkhorn_rounds": 0},
    {"sinkhorn_rounds": 100},
    {"candidates": 1, "hubness_neighbors": 12, "views": WITHOUT_SINKHORN},
    {"candidates": 3, "hubness_neighbors": 12},
    {"candidates": 1000, "hubness_neighbors": 1000},
    {"views": EVERY},
    {"views": EVERY, "outside": "neighbors"},
    {"views": ("local", "sinkhorn"), "outside": "best"},
    {"views": ("sinkhorn", "local-cosine", "global"), "outside": "neighbors", "csls": False},
    {"views": EVERY, "outside": "neighbors", "candidates": 1000},
    {"views": EVERY, "outside": "neighbors", "candidates": 1},
]


class TestTwin:
    @pytest.mark.parametrize("seed", [0, 1])
    @pytest.mark.parametrize("switches", SWITCHES, ids=str)
    def test_every_switch(self, switches: dict[str, Any], seed: int) -> None:
        given, config = problem(seed), quick(**switches)
        assert_cells(given.fuse(config), dense_fuse(given, config))

    @pytest.mark.parametrize("switches", [{}, {"csls": False}])
    def test_without_samplers_there_is_no_local_view(self, switches: dict[str, Any]) -> None:
        given, config = problem(3, samplers=0), quick(**switches)
        assert_cells(given.fuse(config), dense_fuse(given, config))

    @pytest.mark.parametrize("rounds", [0, 1, 40])
    @pytest.mark.parametrize("outside", ["none", "best", "neighbors"])
    @pytest.mark.parametrize("csls", [True, False])
    def test_all_candidates_normalized_without_mini_batches(
        self, csls: bool, outside: Any, rounds: int
    ) -> None:
        given = problem(3, samplers=0)
        config = quick(**ALL_CANDIDATES | {"outside": outside}, csls=csls, sinkhorn_rounds=rounds)
        assert_cells(given.fuse(config), dense_fuse(given, config))

    @pytest.mark.parametrize("switches", [{}, ALL_CANDIDATES], ids=["usual", "global Sinkhorn"])
    @pytest.mark.parametrize("shares", [None, [0.5, 0.2, 0.3]])
    @pytest.mark.parametrize("samplers", [0, 2])
    def test_several_encoders(
        self, samplers: int, shares: list[float] | None, switches: dict[str, Any]
    ) -> None:
        given = with_encoders(problem(1, samplers=samplers), [9, 4], shares)
        config = quick(**switches)
        assert_cells(given.fuse(config), dense_fuse(given, config))

    @pytest.mark.parametrize("outside", ["none", "best", "neighbors"])
    @pytest.mark.parametrize(
        ("temperature", "tolerance"),
        [(1e-3, 1e-4), (0.02, 1e-5), (1.0, 1e-5)],  # a cosine's rounding, over the temperature
    )
    def test_temperatures(self, temperature: float, tolerance: float, outside: Any) -> None:
        given = problem(1)
        config = quick(sinkhorn_temperature=temperature, outside=outside, candidates=30)
        assert_cells(given.fuse(config), dense_fuse(given, config), tolerance)
        config = replace(config, views=EVERY, candidates=6)
        alone = replace(given, partitions=[])  # which of a mini-batch's best is clear only above
        assert_cells(alone.fuse(config), dense_fuse(alone, config), tolerance)

    @pytest.mark.parametrize("sizes", [(1, 1), (1, 9), (9, 1), (2, 40), (40, 3)])
    def test_odd_sizes(self, sizes: tuple[int, int]) -> None:
        """In a mini-batch of one row every column is its whole: so all are candidates here."""
        given, config = problem(0, sizes, num_seeds=0), quick(candidates=40)
        assert_cells(given.fuse(config), dense_fuse(given, config))
        config = replace(config, views=EVERY, outside="neighbors")
        assert_cells(given.fuse(config), dense_fuse(given, config))

    def test_mini_batches_of_one_row_or_none(self) -> None:
        given, config = problem(0, (8, 7), num_batches=12, samplers=3, num_seeds=1), quick()
        assert_cells(given.fuse(config), dense_fuse(given, config))

    def test_seeds_as_a_tensor(self) -> None:
        given = problem(0)
        found = fuse(
            [given.embeddings],
            given.partitions,
            torch.from_numpy(given.seeds),
            given.keys.map(torch.from_numpy),
            quick(),
            device=torch.device("cpu"),
        )
        same(found, given.fuse(quick()))


def same(one: Similarity, other: Similarity) -> None:
    assert torch.equal(one.row_offsets, other.row_offsets)
    assert torch.equal(one.columns, other.columns)
    assert torch.equal(one.values, other.values)


class TestResult:
    def test_lies_between_0_and_1_and_reaches_both(self) -> None:
        for switches in SWITCHES:
            values = problem(4).fuse(quick(**switches)).values
            assert values.dtype == torch.float32
            assert (float(values.min()), float(values.max())) == (0, 1)

    def test_seeds_vectors_have_no_say(self) -> None:
        given = problem(0)
        spoilt = given.embeddings.map(torch.clone)
        spoilt.source[given.seeds[:, 0]] = torch.nan
        spoilt.target[given.seeds[:, 1]] = 7
        same(replace(given, embeddings=spoilt).fuse(quick()), given.fuse(quick()))

    @pytest.mark.parametrize("distinct", [None, 12, 1])
    @pytest.mark.parametrize("view", ["local", "local-cosine"])
    def test_blocks_change_nothing(self, distinct: int | None, view: str) -> None:
        given = problem(0, (150, 115), distinct=distinct, num_batches=2)
        config = quick(views=(view, "global"))
        whole = given.fuse(config)
        for block_cells in (1, 64, 500, 4000, 1 << 20):
            same(given.fuse(config, block_cells=block_cells), whole)

    def test_arguments_stay_as_they_are(self) -> None:
        given = problem(0)
        before = given.embeddings.map(torch.clone)
        labels = given.partitions[0].labels.map(torch.clone)
        given.fuse(quick())
        assert all(torch.equal(*side) for side in given.embeddings.zip(before))
        assert all(torch.equal(*side) for side in given.partitions[0].labels.zip(labels))

    def test_another_seed_changes_ties_alone(self) -> None:
        given = problem(0)
        assert_cells(given.fuse(quick(seed=3)), cells_of(given.fuse(quick(seed=4))), 1e-6)
        tied = problem(0, distinct=3)
        assert set(cells_of(tied.fuse(quick(seed=3)))) != set(cells_of(tied.fuse(quick(seed=4))))

    def test_progress(self) -> None:
        given = problem(0)
        calls: list[tuple[str, int, int]] = []
        fuse(
            [given.embeddings],
            given.partitions,
            given.seeds,
            given.keys,
            quick(),
            progress=lambda *call: calls.append(call),
        )
        assert calls == [
            ("nearest neighbors", 1000, 1000),
            *(("mini-batches of sampler 1 of 2", done, 3) for done in (1, 2, 3)),
            *(("mini-batches of sampler 2 of 2", done, 3) for done in (1, 2, 3)),
        ]


class TestEncoders:
    def test_an_encoder_without_a_share_has_no_say(self) -> None:
        given = problem(2)
        silent = with_encoders(given, [9], [1.0, 0.0])
        assert_cells(silent.fuse(quick()), cells_of(given.fuse(quick())), 1e-6)


class TestExtremes:
    @pytest.mark.parametrize("temperature", [1e-3, 0.02, 1.0])
    @pytest.mark.parametrize("outside", ["none", "best", "neighbors"])
    def test_all_embeddings_alike(self, temperature: float, outside: Any) -> None:
        given = problem(0, (40, 30), distinct=1)
        found = given.fuse(quick(sinkhorn_temperature=temperature, outside=outside))
        assert float(found.values.min()) >= 0
        assert float(found.values.max()) == 1
        rows, columns = zip(*cells_of(found), strict=True)
        assert Pair(sorted(set(rows)), sorted(set(columns))) == given.free()

    @pytest.mark.parametrize("temperature", [1e-3, 1.0])
    def test_opposite_vectors(self, temperature: float) -> None:
        given = problem(0, (20, 20), num_seeds=0)
        opposite = Pair(given.embeddings.source, -given.embeddings.source)
        config = quick(sinkhorn_temperature=temperature, candidates=25)
        given = replace(given, embeddings=opposite)
        assert_cells(given.fuse(config), dense_fuse(given, config), 1e-4)

    @pytest.mark.parametrize("side", ["source", "target"])
    @pytest.mark.parametrize("number", [torch.nan, torch.inf])
    def test_numbers_that_are_none(self, side: str, number: float) -> None:
        given = problem(0)
        free = getattr(given.free(), side)
        getattr(given.embeddings, side)[free[2], 1] = number
        for switches in SWITCHES:
            with pytest.raises(ValueError, match=r"^embeddings must be finite\.$"):
                given.fuse(quick(**switches))

    @pytest.mark.parametrize("sizes", [(6, 9), (9, 6), (6, 6)])
    @pytest.mark.parametrize("outside", ["none", "neighbors"])
    def test_nobody_is_left_on_a_side(self, sizes: tuple[int, int], outside: Any) -> None:
        given = problem(0, sizes, num_seeds=6)
        found = given.fuse(quick(outside=outside))
        assert found.num_cells == 0
        assert found.num_entities == Pair(*sizes)
        ties = given.keys.map(torch.from_numpy)
        assert not len(match(HeldScores.of(found), ties, given.seeds).links)

    def test_mini_batches_that_never_meet(self) -> None:
        """Sources in one half of the mini-batches, targets in the other: nothing is local."""
        given = problem(0)
        apart = Partition(Pair(torch.zeros(31).long(), torch.ones(24).long()), 2)
        local = replace(given, partitions=[apart])
        assert local.fuse(quick(views=LOCAL)).num_cells == 0
        config = quick()
        assert_cells(local.fuse(config), dense_fuse(local, config))


# -- ids -----------------------------------------------------------------------------------------


def through(
    given: Problem, test_links: IntArray, config: FusionConfig, method: str
) -> tuple[Similarity, Alignment, Metrics]:
    similarity = given.fuse(config)
    ties = given.keys.map(torch.from_numpy)
    alignment = match(HeldScores.of(similarity), ties, given.seeds, method=method, seed=config.seed)
    return similarity, alignment, evaluate(similarity, test_links, given.seeds, alignment=alignment)


def listed(links: IntArray, alignment: Alignment) -> list[tuple[list[int], float]]:
    return list(zip(links.tolist(), alignment.confidence.tolist(), strict=True))


class TestIds:
    @pytest.mark.parametrize("method", ["one-to-one", "greedy", "mutual", "best"])
    @pytest.mark.parametrize("distinct", [None, 20, 1])
    @pytest.mark.parametrize("outside", ["none", "neighbors"])
    def test_no_numbering_shows(self, distinct: int | None, outside: Any, method: str) -> None:
        """The same pairs, confidences and metrics, to the last bit, though ties abound."""
        given = problem(5, (120, 90), distinct=distinct)
        rest = Pair(*(np.array(side) for side in given.free()))
        test_links = np.stack([rest.source[:60], rest.target[:60]], 1)
        config = quick(outside=outside)
        similarity, alignment, metrics = through(given, test_links, config, method)
        pairs = listed(alignment.links.numpy(), alignment)
        rng = np.random.default_rng(0)
        for _ in range(3):
            new = Pair(rng.permutation(120), rng.permutation(90))
            old = new.map(np.argsort)
            other = renumbered(given, new)
            shuffled = rng.permutation(links_renumbered(test_links, new))
            similarity_, alignment_, metrics_ = through(other, shuffled, config, method)
            back = links_renumbered(alignment_.links.numpy(), old)
            # In the same order too: the surest first, and ties by their names.
            assert listed(back, alignment_) == pairs
            assert metrics_ == metrics
            cells = {
                (int(old.source[i]), int(old.target[j])): value
                for (i, j), value in cells_of(similarity_).items()
            }
            assert cells == cells_of(similarity)

    @pytest.mark.parametrize("distinct", [None, 20, 1])
    @pytest.mark.parametrize(("encoders", "samplers"), [(1, 0), (2, 0), (2, 2)])
    @pytest.mark.parametrize("outside", ["none", "neighbors"])
    def test_nor_with_two_encoders_and_all_candidates_normalized(
        self, outside: Any, samplers: int, encoders: int, distinct: int | None
    ) -> None:
        given = problem(5, (120, 90), distinct=distinct, samplers=samplers)
        if encoders == 2:
            other = problem(6, (120, 90), distinct=distinct, dim=9)
            given = replace(given, more=[other.embeddings], shares=[0.7, 0.3])
        config = quick(**ALL_CANDIDATES | {"outside": outside})
        cells = cells_of(given.fuse(config))
        rng = np.random.default_rng(0)
        new = Pair(rng.permutation(120), rng.permutation(90))
        old = new.map(np.argsort)
        assert cells == {
            (int(old.source[i]), int(old.target[j])): value
            for (i, j), value in cells_of(renumbered(given, new).fuse(config)).items()
        }

    def test_keys_decide_where_nothing_else_does(self) -> None:
        given = problem(5, (60, 50), distinct=1)
        keys = given.keys.map(lambda side: np.random.default_rng(1).permutation(side))
        assert set(cells_of(given.fuse(quick()))) != set(
            cells_of(replace(given, keys=keys).fuse(quick()))
        )

    @pytest.mark.parametrize("view", ["local", "local-cosine"])
    def test_equal_names_do_not_attract(self, view: str) -> None:
        """Where vectors tell nothing, the namesake is found as often as anybody else."""
        size, draws = 150, 12
        names = Names([f"http://example.org/{i}" for i in range(size)]).keys()
        truth = np.stack([np.arange(size)] * 2, 1)
        hits, correct, there = 0.0, 0.0, 0
        for seed in range(draws):
            given = problem(seed, (size, size), distinct=1, samplers=1, num_seeds=0)
            alike = Partition(Pair(*[given.partitions[0].labels.source] * 2), 3)
            given = replace(given, keys=Pair(names, names), partitions=[alike])
            config = quick(seed=seed, candidates=15, views=(view, "global"))
            _, _, metrics = through(given, truth, config, "one-to-one")
            assert metrics.matching is not None
            hits += metrics.all_candidates.source.hits[1] * size
            correct += metrics.matching.recall * size
            there += size - metrics.missing
        # A chance guess is right once in a draw, within a mini-batch three times. 36 and 6 a
        # deviation; who is drawn to namesakes has them by the hundred.
        assert hits < 60
        assert correct < 60
        assert there < 0.6 * size * draws  # about 50 of 150 share a batch, or are found by chance


class TestViews:
    def test_an_unknown_one(self) -> None:
        with pytest.raises(InputError, match="unknown view 'globl'.*Did you mean 'global'"):
            problem(0).fuse(quick(views=("local", "globl")))

    def test_nothing_is_left_without_samplers(self) -> None:
        with pytest.raises(InputError, match=r"^nothing to fuse: .*no mini-batches for local\."):
            problem(0, samplers=0).fuse(quick(views=LOCAL))

    def test_a_new_one_is_one_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(VIEWS, "other", View(VIEWS["global"].make))
        given = problem(0)
        same(given.fuse(quick(views=("other",))), given.fuse(quick(views=("global",))))

    @pytest.mark.parametrize("views", [("local", "global"), ("global",)])
    def test_vectors_are_let_go_when_no_view_needs_them(
        self, views: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """At a million entities they are gigabytes that the sums then need."""
        kept: list[weakref.ref[torch.Tensor]] = []
        alive: list[bool] = []

        def watched(*arguments: Any) -> Any:
            found = search(*arguments)
            kept.extend(weakref.ref(rows) for side in found[1] for rows in side.refs)
            return found

        def view(given: ViewInput) -> Similarity:
            alive.extend(vectors() is not None for vectors in kept)
            return global_view(given)

        monkeypatch.setattr(sys.modules["clusterea.sharded.fuse"], "search", watched)
        monkeypatch.setitem(VIEWS, "global", View(view))
        problem(0, num_batches=2).fuse(quick(views=views))
        assert alive == [False, False]


# -- shards --------------------------------------------------------------------------------------


EVERYTHING: dict[str, Any] = {
    "views": ("local", "support", "global"),
    "csls": True,
    "outside": "neighbors",
}
CUT_SWITCHES: list[dict[str, Any]] = [
    EVERYTHING,
    EVERYTHING | {"search": "approximate", "search_compared": 20},
    {"views": ("sinkhorn",), "csls": False, "outside": "best", "hubness_neighbors": 9},
    {"views": ("support",), "csls": False, "search": "approximate", "search_compared": 5},
    {"views": ("local-cosine", "sinkhorn"), "sinkhorn_temperature": 2e-3},
]


def fused(config: FusionConfig, engine: Engine, **changes: Any) -> Similarity:
    """Two encoders, names, hidden, rejected and structural entities."""
    given = with_encoders(problem(0, (170, 140), num_seeds=20), [9], [0.6, 0.4])
    names = with_encoders(problem(0, (170, 140)), [8], seed=7).more
    free = given.free()
    options: dict[str, Any] = {
        "shares": given.shares,
        "graphs": Pair(*given.embeddings.map(len)).map(
            lambda size: random_pair(size, entities=size, triples=4 * size).source
        ),
        "structural": free.map(lambda side: np.array(side[:3])),
        "contents": names,
        "trust": Trust(
            torch.linspace(0, 1, 10).double().unsqueeze(0),
            torch.linspace(0, 3, 10).square().double().unsqueeze(0),
        ),
        "hidden": free.map(lambda side: np.array(side[10:15])),
        "rejected": np.stack([np.repeat(free.source[5:15], 30), np.tile(free.target[5:35], 10)], 1),
    }
    return fuse(
        given.encodings,
        given.partitions,
        given.seeds,
        given.keys,
        config,
        engine=engine,
        **(options | changes),
    )


class TestShards:
    @CUTS
    @pytest.mark.parametrize("switches", CUT_SWITCHES, ids=str)
    def test_same_bytes(
        self,
        switches: dict[str, Any],
        shards: int,
        is_out_of_core: bool,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        small_tiles(monkeypatch)
        config = quick(**switches)
        wanted = fused(config, InMemory(1))
        with cutting(shards, is_out_of_core, tmp_path) as engine:
            same(fused(config, engine), wanted)

    def test_all_that_is_given_matters(self, monkeypatch: pytest.MonkeyPatch) -> None:
        small_tiles(monkeypatch)
        config, engine = quick(**EVERYTHING), InMemory(3)
        whole = cells_of(fused(config, engine))
        for change in (
            {"rejected": NO_LINKS},
            {"trust": None},
            {"hidden": NO_ENTITIES},
            {"structural": NO_ENTITIES},
            {"shares": [0.5, 0.5]},
        ):
            assert cells_of(fused(config, engine, **change)) != whole

    @settings(max_examples=40)
    @drawn(
        sizes=st.tuples(*[st.sampled_from([6, 7, 9, 20, 33])] * 2),
        views=st.sampled_from([("sinkhorn",), ("local", "global"), ("local", "support")]),
        search=st.sampled_from(["exact", "approximate"]),
        tile=st.sampled_from([1, 3, 8, 64]),
        shards=st.integers(2, 9),
        num_zeros=st.sampled_from([0, 3, 40]),
    )
    def test_cuts_of_any_size(
        self,
        sizes: tuple[int, int],
        views: tuple[str, ...],
        search: Any,
        tile: int,
        shards: int,
        num_zeros: int,
    ) -> None:
        """With six seeds, a side may have nobody left, or one entity."""
        given = problem(0, sizes, num_seeds=6)
        given.embeddings.source[:num_zeros] = 0.0
        graphs = Pair(*sizes).map(
            lambda size: random_pair(size, entities=size, triples=2 * size).source
        )
        config = quick(
            views=views, search=search, search_compared=3, outside="neighbors", csls=False
        )
        with pytest.MonkeyPatch.context() as patch:
            small_tiles(patch, tile)
            wanted = given.fuse(config, graphs=graphs, engine=InMemory(1))
            same(given.fuse(config, graphs=graphs, engine=InMemory(shards)), wanted)

    def test_the_number_of_shards_may_be_left_open(self, monkeypatch: pytest.MonkeyPatch) -> None:
        small_tiles(monkeypatch)
        config = quick(**EVERYTHING)
        wanted = fused(config, InMemory(1))
        monkeypatch.setattr(shards_module, "ROWS_OF_SHARD", 40)
        same(fused(config, InMemory()), wanted)
