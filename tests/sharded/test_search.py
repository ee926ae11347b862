"""The search for nearest neighbors of undecided entities, whole and in shards."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from cut_engines import CUTS, cutting, small_tiles
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from clusterea.engines import InMemory
from clusterea.fusion.undecided import Undecided, VectorTable, undecided
from clusterea.numerics import lists
from clusterea.numerics.knn import Nearest, Neighbors
from clusterea.sharded.search import search
from clusterea.types import Pair
from dense_fusion import problem, quick
from small_graphs import random_pair
from vector_problems import problem as vector_problem
from whole_runs import joined, nearest, nearest_approximate, searched

CPU = torch.device("cpu")


def entities(seed: int = 0, sizes: tuple[int, int] = (31, 24), **options: int) -> Undecided:
    given = problem(seed, sizes, **options)
    return undecided([given.embeddings], given.seeds, given.keys, quick().seed)


def test_one_search_is_enough_for_candidates_and_hubness() -> None:
    for candidates, hubness in ((3, 9), (9, 3)):
        config = quick(candidates=candidates, hubness_neighbors=hubness)
        found = searched(entities(), config, CPU)
        assert found.source.indices.shape == (26, 9)
        assert found.target.indices.shape == (19, 9)


def test_blocks_change_nothing() -> None:
    free = entities(0, (150, 120), distinct=9)
    whole = searched(free, quick(), CPU)
    calls: list[tuple[int, int]] = []
    for block_cells in (1, 5000):
        found = searched(free, quick(), CPU, block_cells, lambda *call: calls.append(call))
        for side in found.zip(whole):
            assert torch.equal(side[0].indices, side[1].indices)
            assert torch.equal(side[0].values, side[1].values)
    assert calls[-1][0] == calls[-1][1] > 1


def test_approximate_search_finds_the_same_where_it_looks_everywhere() -> None:
    free = entities(0, (60, 50))  # so few that all are compared
    exact, found = (searched(free, quick(search=how), CPU) for how in ("exact", "approximate"))
    for side in found.zip(exact):
        assert torch.equal(side[0].indices, side[1].indices)
        assert torch.equal(side[0].values, side[1].values)


def test_a_gpu_searches_exactly_up_to_a_size() -> None:
    config = quick(search="approximate")
    assert config.on("cpu", (1000, 1000)) == config
    assert config.on("cuda", (2_000_000, 2_000_000)) == quick(search="exact")
    assert config.on("cuda", (2_000_000, 3_000_000)) == config


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("recall", [0.9, 1.0])
def test_near_groups_on_a_gpu_find_the_wanted_share(recall: float) -> None:
    draw = torch.Generator().manual_seed(0)
    centers = torch.randn(300, 64, generator=draw)
    sides = Pair(
        *(
            normalize(centers[torch.randint(300, (size,), generator=draw)] + noise, dim=1).half()
            for size, noise in (
                (size, torch.randn(size, 64, generator=draw)) for size in (60_000, 45_000)
            )
        )
    )
    device = torch.device("cuda")
    free = Undecided(
        sides.map(lambda rows: torch.arange(len(rows))),
        sides.map(lambda rows: torch.randint(2**62, (len(rows),), generator=draw)),
        sides.map(lambda rows: VectorTable([rows], [1.0], device)),
        sides.map(len),
    )
    config = quick(candidates=50, search="approximate", search_recall=recall)
    exact = searched(free, replace(config, search="exact"), device)
    found = searched(free, config, device)
    shared = lists.recall(found, exact)
    assert sum(shared) / 2 > recall - 0.01
    for side in found.zip(exact):
        assert bool((side[0].values <= side[1].values + 1e-6).all())
        assert bool((side[0].indices.sort(1).values.diff(dim=1) > 0).all())


# -- cuts ----------------------------------------------------------------------------------------


def same(one: Nearest, other: Nearest) -> bool:
    return all(
        torch.equal(left.indices, right.indices) and torch.equal(left.values, right.values)
        for left, right in one.zip(other)
    )


@CUTS
@pytest.mark.parametrize("distinct", [None, 30])
def test_exact_search_gives_the_same_bytes(
    shards: int,
    is_out_of_core: bool,
    distinct: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_tiles(monkeypatch)
    source, target, keys = vector_problem(150, 115, distinct=distinct)
    source[40:45] = target[-3:] = 0.0
    wanted = nearest(source, target, 7, keys, 0)
    with cutting(shards, is_out_of_core, tmp_path) as engine:
        assert same(nearest(source, target, 7, keys, 0, engine=engine), wanted)


@CUTS
@pytest.mark.parametrize("compared", [1, 30, 1000])
@pytest.mark.parametrize("distinct", [None, 30])
def test_search_by_lists_gives_the_same_bytes(
    shards: int,
    is_out_of_core: bool,
    distinct: int | None,
    compared: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_tiles(monkeypatch)
    source, target, keys = vector_problem(150, 115, distinct=distinct)
    source[40:45] = target[-3:] = 0.0
    wanted = nearest_approximate(source, target, 7, keys, 0, compared=compared)
    with cutting(shards, is_out_of_core, tmp_path) as engine:
        found = nearest_approximate(source, target, 7, keys, 0, compared=compared, engine=engine)
    assert same(found, wanted)


@settings(max_examples=60)
@given(
    rows=st.integers(0, 40),
    columns=st.integers(0, 40),
    num_zeros=st.integers(0, 40),
    k=st.integers(1, 9),
    tile=st.sampled_from([1, 3, 8, 64]),
    shards=st.integers(2, 9),
    compared=st.sampled_from([None, 1, 10]),
)
def test_cuts_of_any_size(
    rows: int, columns: int, num_zeros: int, k: int, tile: int, shards: int, compared: int | None
) -> None:
    """Also with an empty side, with fewer rows than a tile, and with sides of zeros."""
    source, target, keys = vector_problem(rows, columns)
    source[:num_zeros] = target[:num_zeros] = 0.0
    with pytest.MonkeyPatch.context() as patch:
        small_tiles(patch, tile)
        found = [
            nearest(source, target, k, keys, 0, engine=engine)
            if compared is None
            else nearest_approximate(source, target, k, keys, 0, compared=compared, engine=engine)
            for engine in (InMemory(1), InMemory(shards))
        ]
    assert same(*found)


def test_shards_of_a_search_by_lists_have_whole_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are in the order of lists, so where a shard ends, a list ends."""
    small_tiles(monkeypatch)
    config = quick(search="approximate", search_compared=10)
    free = entities(0, (150, 120), distinct=9)
    after, vectors, found = search(InMemory(8), free, config, CPU)
    assert after.entities.map(lambda side: sorted(side.tolist())) == free.entities.map(
        lambda side: sorted(side.tolist())
    )
    for side, ids, table in zip(vectors, after.entities, after.tables, strict=True):
        assert 1 < len(side) <= 8
        assert all(start < stop for start, stop in side.ranges())
        assert torch.cat(side.refs).equal(table.rows(ids))
        for one, other in pairwise(side.refs):  # equal vectors are in one list
            assert not bool((one[:, None] == other[None]).all(2).any())
    assert found.map(lambda side: side.bounds) == vectors.map(lambda side: side.bounds)


@CUTS
def test_a_join_gives_the_same_bytes(
    shards: int, is_out_of_core: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_tiles(monkeypatch)
    given = problem(0, (150, 150), num_seeds=30)
    graphs = random_pair(4, entities=150, triples=400)
    free = undecided([given.embeddings], given.seeds, given.keys, 3)
    config = quick(search="approximate", search_compared=5, search_joined=20)
    poor = searched(free, config, CPU)
    wanted = joined(poor, free, graphs, given.seeds, config)
    assert not same(wanted, poor)
    with cutting(shards, is_out_of_core, tmp_path) as engine:
        assert same(joined(poor, free, graphs, given.seeds, config, engine=engine), wanted)


@settings(max_examples=30)
@given(
    sizes=st.tuples(*[st.sampled_from([6, 9, 17, 30, 41])] * 2),
    triples=st.integers(0, 60),
    tile=st.sampled_from([1, 3, 8, 64]),
    shards=st.integers(2, 9),
)
def test_joins_of_any_cut(sizes: tuple[int, int], triples: int, tile: int, shards: int) -> None:
    given = problem(0, sizes, num_seeds=6)
    graphs = Pair(*sizes).map(
        lambda size: random_pair(size, entities=size, triples=min(triples, size)).source
    )
    free = undecided([given.embeddings], given.seeds, given.keys, 3)
    config = quick(search="approximate", candidates=2, hubness_neighbors=2)
    found = searched(free, config, CPU)
    poor = found.map(lambda side: Neighbors(side.indices[:, 1:], side.values[:, 1:]))
    wanted = joined(poor, free, graphs, given.seeds, config)
    with pytest.MonkeyPatch.context() as patch:
        small_tiles(patch, tile)
        engine = InMemory(shards)
        assert same(joined(poor, free, graphs, given.seeds, config, engine=engine), wanted)


@pytest.mark.parametrize("how", ["exact", "approximate"])
def test_progress_goes_up_to_all(how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    small_tiles(monkeypatch)
    calls: list[tuple[int, int]] = []
    free = entities(0, (100, 90))
    config = quick(search=how)
    searched(free, config, CPU, 500, lambda *call: calls.append(call), engine=InMemory(3))
    done = [each for each, _ in calls]
    assert done == sorted(done)
    assert len(set(done)) > 3
    assert {total for _, total in calls} == {done[-1]}
