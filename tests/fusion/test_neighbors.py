"""The search for nearest neighbors of entities that are still to be matched."""

from __future__ import annotations

import torch
from dense_fusion import problem, quick

from clusterea.fusion.neighbors import search
from clusterea.fusion.undecided import Undecided, undecided

CPU = torch.device("cpu")


def entities(seed: int = 0, sizes: tuple[int, int] = (31, 24), **options: int) -> Undecided:
    given = problem(seed, sizes, **options)
    return undecided([given.embeddings], given.seeds, given.keys, quick().seed)


def test_one_search_is_enough_for_candidates_and_hubness() -> None:
    for candidates, hubness in ((3, 9), (9, 3)):
        config = quick(candidates=candidates, hubness_neighbors=hubness)
        found = search(entities(), config, CPU)
        assert found.source.indices.shape == (26, 9)
        assert found.target.indices.shape == (19, 9)


def test_blocks_change_nothing() -> None:
    free = entities(0, (150, 120), distinct=9)
    whole = search(free, quick(), CPU)
    calls: list[tuple[int, int]] = []
    for block_cells in (1, 5000):
        found = search(free, quick(), CPU, block_cells, lambda *call: calls.append(call))
        for side in found.zip(whole):
            assert torch.equal(side[0].indices, side[1].indices)
            assert torch.equal(side[0].values, side[1].values)
    assert calls[-1][0] == calls[-1][1] > 1


def test_approximate_search_finds_the_same_where_it_looks_everywhere() -> None:
    free = entities(0, (60, 50))  # so few that all are compared
    exact, found = (search(free, quick(search=how), CPU) for how in ("exact", "approximate"))
    for side in found.zip(exact):
        assert torch.equal(side[0].indices, side[1].indices)
        assert torch.equal(side[0].values, side[1].values)


def test_a_gpu_searches_exactly() -> None:
    config = quick(search="approximate")
    assert config.on("cpu") == config
    assert config.on("cuda") == quick(search="exact")
