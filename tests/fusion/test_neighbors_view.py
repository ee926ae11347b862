"""The global view: both directions' neighbors, a pair that both found counting twice."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from dense_fusion import assert_cells, cells_of, dense_neighbors, problem, quick

from clusterea.fusion.neighbors import neighbors_view, search
from clusterea.fusion.undecided import Undecided, undecided
from clusterea.types import Pair

CPU = torch.device("cpu")


def entities(seed: int = 0, sizes: tuple[int, int] = (31, 24), **options: int) -> Undecided:
    given = problem(seed, sizes, **options)
    return undecided([given.embeddings], given.seeds, given.keys, quick().seed)


@pytest.mark.parametrize("candidates", [1, 5, 100])
def test_loops_agree(candidates: int) -> None:
    given, config = problem(1), quick(candidates=candidates)
    free = undecided([given.embeddings], given.seeds, given.keys, config.seed)
    found = neighbors_view(free, search(free, config, CPU), config)
    cosines = (given.embeddings.source.double() @ given.embeddings.target.double().T).numpy()
    assert_cells(found, dense_neighbors(cosines, given.free(), config))


def test_what_both_found_counts_twice() -> None:
    rows = torch.nn.functional.normalize(torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.1, 1.0]]))
    columns = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    nobody = np.empty((0, 2), dtype=np.int64)
    free = undecided([Pair(rows, columns)], nobody, Pair(np.arange(3), np.arange(2)), 0)
    config = quick(candidates=1, hubness_neighbors=1)
    cells = cells_of(neighbors_view(free, search(free, config, CPU), config))
    assert cells == pytest.approx(
        {
            (0, 0): 2.0,  # each other's nearest
            (1, 0): 1 / 1.01**0.5,
            (2, 0): 0.1 / 1.01**0.5,
            (2, 1): -0.1 / 1.01**0.5,  # the target's nearest, which has a nearer one
        }
    )


def test_one_search_is_enough_for_candidates_and_hubness() -> None:
    free = entities()
    for candidates, hubness in ((3, 9), (9, 3)):
        config = quick(candidates=candidates, hubness_neighbors=hubness)
        found = search(free, config, CPU)
        assert found.source.indices.shape == (26, 9)
        assert found.target.indices.shape == (19, 9)
        rows = neighbors_view(free, found, config).rows().bincount(minlength=31)
        assert int(rows[free.entities.source].min()) >= candidates
        assert int(rows.sum()) <= candidates * (26 + 19)


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


def test_nobody_on_one_side() -> None:
    free = entities(0, (9, 6), num_seeds=6)
    config = quick()
    view = neighbors_view(free, search(free, config, CPU), config)
    assert view.num_cells == 0
    assert view.num_entities == Pair(9, 6)
