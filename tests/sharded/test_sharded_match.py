"""Matching in shards: what one shard finds, and what loops over all cells find."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from cut_engines import CUTS, cutting, small_tiles
from torch import Tensor

from clusterea.engines import Engine, InMemory
from clusterea.matching import MATCHERS, link_features, pseudo_seeds
from clusterea.matching.greedy import greedy
from clusterea.numerics.block_sizes import BLOCK_SIZES
from clusterea.numerics.cells import without_pairs
from clusterea.numerics.ties import pair_hash
from clusterea.sharded import HeldScores, ShardedCells, match
from clusterea.types import Alignment, AlignmentTask, Pair, Similarity
from small_graphs import random_pair

ROWS, COLUMNS = 90, 70
METHODS = pytest.mark.parametrize("method", MATCHERS)
SEEDS = torch.tensor([[3, 8], [50, 20], [89, 69]])
REJECTED = np.array([[0, 1], [17, 4], [88, 60]])


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tiles in a shard, several blocks in a tile, and rounds to the last cell."""
    small_tiles(monkeypatch)
    monkeypatch.setitem(BLOCK_SIZES["matched"], "cpu", 64)
    monkeypatch.setitem(BLOCK_SIZES["chosen"], "cpu", 4)
    for module, bound in (("greedy", "FEW"), ("one_to_one", "MOST_CELLS")):
        # The package has functions of these names.
        monkeypatch.setattr(import_module(f"clusterea.matching.{module}"), bound, 4)


def tied(seed: int = 0) -> Similarity:
    """Few different scores, so that most cells tie; some rows and columns have no cell."""
    draw = torch.Generator().manual_seed(seed)
    dense = torch.randint(0, 5, (ROWS, COLUMNS), generator=draw).float() / 4
    is_cell = torch.rand(ROWS, COLUMNS, generator=draw) < 0.4
    is_cell[5], is_cell[:, 11] = False, False
    columns = is_cell.nonzero()[:, 1]
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), is_cell.sum(1).cumsum(0)])
    return Similarity(offsets, columns.int(), dense[is_cell], Pair(ROWS, COLUMNS))


def keys(same: int = 1) -> Pair[Tensor]:
    """Keys of names, of which always `same` are the same."""
    draw = torch.Generator().manual_seed(1)
    drawn = Pair(ROWS, COLUMNS).map(lambda n: torch.randint(-(2**62), 2**62, (n,), generator=draw))
    return drawn.map(lambda side: side[torch.arange(len(side)) // same * same])


def matched(engine: Engine, method: str) -> Alignment:
    return match(HeldScores.of(tied(), engine), keys(), SEEDS, method=method)


def same(one: Alignment, other: Alignment) -> bool:
    return all(torch.equal(each, other.tensors()[name]) for name, each in one.tensors().items())


@CUTS
@METHODS
def test_an_alignment_is_that_of_one_shard(
    method: str, shards: int, is_out_of_core: bool, tmp_path: Path
) -> None:
    with cutting(shards, is_out_of_core, tmp_path) as engine:
        assert same(matched(engine, method), matched(InMemory(1), method))


@CUTS
@pytest.mark.parametrize("alike", [1, 3])
def test_rounds_take_what_a_walk_takes(
    alike: int, shards: int, is_out_of_core: bool, tmp_path: Path
) -> None:
    """Also where names share a key, so that only positions decide."""
    similarity, ties = tied(), keys(alike)
    rows, columns = similarity.rows(), similarity.columns
    hashes = pair_hash(ties.source[rows], ties.target[columns], 7)
    order = sorted(
        zip(
            (-similarity.values).tolist(),
            (~hashes).tolist(),
            rows.tolist(),
            columns.tolist(),
            strict=True,
        )
    )
    taken = Pair(set(SEEDS[:, 0].tolist()), set(SEEDS[:, 1].tolist()))
    wanted = []
    for _, _, row, column in order:
        if row not in taken.source and column not in taken.target:
            wanted.append((row, column))
            taken.source.add(row)
            taken.target.add(column)
    with cutting(shards, is_out_of_core, tmp_path) as engine:
        held = HeldScores.of(similarity, engine)
        found = greedy(ShardedCells.of(held, ties, Pair(*SEEDS.T), 7))
        ends = zip(found.ends.source.tolist(), found.ends.target.tolist(), strict=True)
        assert sorted(ends) == sorted(wanted)


@CUTS
def test_links_are_compared_with_their_rivals(
    shards: int, is_out_of_core: bool, tmp_path: Path
) -> None:
    similarity = tied()
    draw = torch.Generator().manual_seed(2)
    links = torch.stack([torch.randperm(n, generator=draw)[:60] for n in (ROWS, COLUMNS)], dim=1)
    table = torch.full((ROWS, COLUMNS), torch.nan)
    table[similarity.rows(), similarity.columns] = similarity.values
    table[tuple(torch.from_numpy(REJECTED).T)] = torch.nan
    least = min(value for row in table.tolist() for value in row if value == value)

    def best(line: Tensor, at: int) -> float:
        others = [value for i, value in enumerate(line.tolist()) if i != at and value == value]
        return max(others, default=-torch.inf)

    with cutting(shards, is_out_of_core, tmp_path) as engine:
        found = HeldScores.of(similarity, engine, REJECTED).compared(links)
    score = [float(table[s, t]) for s, t in links.tolist()]
    assert found.score.tolist() == [least if value != value else value for value in score]
    assert found.row.tolist() == [best(table[s], t) for s, t in links.tolist()]
    assert found.column.tolist() == [best(table[:, t], s) for s, t in links.tolist()]
    assert float(found.least) == least


@CUTS
def test_features_and_pseudo_seeds_are_those_of_one_shard(
    shards: int, is_out_of_core: bool, tmp_path: Path
) -> None:
    task = AlignmentTask(random_pair(0, entities=COLUMNS, triples=200), SEEDS[:2].numpy())

    def found(engine: Engine) -> list[Tensor]:
        held = HeldScores.of(tied(), engine, REJECTED)
        some = pseudo_seeds(
            ShardedCells.of(held, keys(), Pair(*SEEDS.T), 0), threshold=0.3, otherwise=0
        )
        links = some[some[:, 0] < COLUMNS]
        return [some, link_features(held, links, task)]

    with cutting(shards, is_out_of_core, tmp_path) as engine:
        one, other = found(engine), found(InMemory(1))
    assert len(one[0]) > 10
    assert all(map(torch.equal, one, other))


def test_rejected_pairs_have_no_cell() -> None:
    whole = HeldScores.of(without_pairs(tied(), REJECTED))
    part = HeldScores.of(tied(), rejected=REJECTED)
    for one, other in zip(whole.shards.refs, part.shards.refs, strict=True):
        assert torch.equal(one.offsets, other.offsets)
        assert torch.equal(one.columns, other.columns)
        assert torch.equal(one.values, other.values)
