"""Sinkhorn in shards of rows and of columns: the same bytes in any cut.

What it computes is tested in `test_sparse_sinkhorn.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from cut_engines import CUTS, cutting, small_tiles
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from clusterea.engines import InMemory
from clusterea.sharded.shards import cut
from clusterea.sharded.sinkhorn import potentials
from clusterea.types import Pair, Similarity
from whole_runs import cut_cells, sparse_sinkhorn

KERNEL, LOGS = 0.02, 2e-3  # temperatures, with options


def cells(rows: int, columns: int, seed: int = 0, share: float = 0.1) -> Similarity:
    """Random cosines. Some rows and columns are empty."""
    draw = torch.Generator().manual_seed(seed)
    present = torch.rand(rows, columns, generator=draw) < share
    present[rows // 2 : rows // 2 + 3] = False
    present[:, columns // 3 : columns // 3 + 2] = False
    values = 2 * torch.rand(rows, columns, generator=draw) - 1
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), present.sum(1).cumsum(0)])
    return Similarity(offsets, present.nonzero()[:, 1], values[present], Pair(rows, columns))


def options(of: Similarity) -> Pair[Tensor]:
    draw = torch.Generator().manual_seed(7)
    return of.num_entities.map(lambda size: torch.rand(size, generator=draw))


def same(one: Similarity, other: Similarity) -> bool:
    return (
        one.num_entities == other.num_entities
        and torch.equal(one.row_offsets, other.row_offsets)
        and torch.equal(one.columns, other.columns)
        and torch.equal(one.values, other.values)
    )


@CUTS
@pytest.mark.parametrize(
    ("temperature", "with_outside"), [(KERNEL, True), (LOGS, True), (KERNEL, False)]
)
def test_same_bytes(
    shards: int,
    is_out_of_core: bool,
    temperature: float,
    with_outside: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small_tiles(monkeypatch)
    given = cells(150, 115)
    outside = options(given) if with_outside else None
    wanted = sparse_sinkhorn(given, temperature, 15, outside)
    with cutting(shards, is_out_of_core, tmp_path) as engine:
        found = sparse_sinkhorn(given, temperature, 15, outside, engine=engine)
    assert same(found, wanted)
    assert wanted.values.max() > 0.1


@settings(max_examples=60)
@given(
    rows=st.integers(0, 40),
    columns=st.integers(0, 40),
    share=st.sampled_from([0.0, 0.1, 1.0]),
    tile=st.sampled_from([1, 3, 8, 64]),
    shards=st.integers(2, 9),
    temperature=st.sampled_from([KERNEL, LOGS]),
    with_outside=st.booleans(),
)
def test_cuts_of_any_size(
    rows: int,
    columns: int,
    share: float,
    tile: int,
    shards: int,
    temperature: float,
    with_outside: bool,
) -> None:
    given = cells(rows, columns, share=share)
    outside = options(given) if with_outside else None
    wanted = sparse_sinkhorn(given, temperature, 4, outside)
    with pytest.MonkeyPatch.context() as patch:
        small_tiles(patch, tile)
        assert same(
            sparse_sinkhorn(given, temperature, 4, outside, engine=InMemory(shards)), wanted
        )


def test_one_shard_alone_decides_the_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    """All values but one are close together, so only one shard needs the log domain."""
    small_tiles(monkeypatch)
    given = cells(100, 90)
    given.values.mul_(0.1)
    given.values[-1] = -40.0
    wanted = sparse_sinkhorn(given, KERNEL, 9, options(given))
    assert same(sparse_sinkhorn(given, KERNEL, 9, options(given), engine=InMemory(5)), wanted)


def test_rounds_may_start_where_others_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    small_tiles(monkeypatch)
    engine, given = InMemory(3), cells(100, 90)
    shards, columns = cut_cells(given, engine), cut(90, engine)
    outside = options(given)
    first = potentials(engine, shards, columns, KERNEL, 4, outside)
    both = potentials(engine, shards, columns, KERNEL, 5, outside, first)
    once = potentials(engine, shards, columns, KERNEL, 9, outside)
    assert both is not None
    assert once is not None
    assert all(torch.equal(*side) for side in both.zip(once))


def test_without_cells_there_are_no_potentials() -> None:
    engine, nothing = InMemory(2), cells(5, 4, share=0.0)
    shards = cut_cells(nothing, engine)
    assert potentials(engine, shards, [0, 4], KERNEL, 5, options(nothing)) is None
    begin = options(nothing)
    assert potentials(engine, shards, [0, 4], KERNEL, 5, begin=begin) is begin
