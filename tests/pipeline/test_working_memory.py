"""The memory of single stages."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_runs import benchmark, in_rounds, quick

from clusterea.config import PRESETS, TrainingConfig, preset
from clusterea.pipeline.planned import Planned, planned_stages
from clusterea.pipeline.working_memory import (
    Need,
    Sizes,
    drawn_nodes,
    largest_batch_of,
    reached_nodes,
    working_memory,
)


def test_numbers_of_stages_are_theirs() -> None:
    """They are copied, because the modules of the stages load torch."""
    trust, one_to_one, knn, labels, propagation, files, cost, own = (
        import_module(f"clusterea.{name}")
        for name in (
            "fusion.trust",
            "matching.one_to_one",
            "numerics.knn",
            "training.label_propagation",
            "sharded.propagation",
            "export.run_files",
            "pipeline.cost",
            "pipeline.working_memory",
        )
    )
    assert (own.WHOLE, own.SPARE, own.GROUP) == (knn.WHOLE, knn.SPARE, knn.GROUP)
    assert (own.LOOKED_AT, own.COMPARED) == (trust.LOOKED_AT, trust.MOST_COMPARED)
    assert own.AT_ONCE == trust.ROWS_AT_ONCE
    assert own.SLAB == labels.SLAB
    assert propagation.ROWS_HERE["cpu"] == own.ROWS_HERE
    assert own.WRITTEN == files.CELLS
    assert cost.OPTIMAL == one_to_one.MOST_ENTITIES


TASK = benchmark((3000, 2800), degree=5).task


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("name", PRESETS)
def test_smaller_blocks_never_take_more(name: str, on: str) -> None:
    config = preset(name, 3000)
    sizes = Sizes(TASK, config, on)
    for stage in planned_stages(TASK, config):
        need = working_memory(stage, sizes)
        assert 0 <= need.fewest <= need.most


def test_a_need_is_what_is_fixed_and_blocks() -> None:
    need = Need(10, 5, 2)
    assert (need.most, need.fewest) == (15, 12)


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_wider_vectors_take_more(one: int, other: int) -> None:
    sizes = Sizes(TASK, preset("fast", 3000), "cpu")
    low, high = sorted([one, other])
    fewer, more = (
        working_memory(Planned("fusion", "fusion", structure=width), sizes) for width in (low, high)
    )
    assert fewer.most <= more.most
    assert fewer.fewest <= more.fewest


def test_a_step_reaches_no_more_nodes_than_there_are() -> None:
    encoder = TrainingConfig(seeds_per_step=50, negatives_per_step=100)
    stage = Planned("training", "training", pairs=500, encoder=encoder)
    sizes = Sizes(TASK, quick(), "cpu")
    assert drawn_nodes(stage, sizes) == 2 * 50 + 2 * 100
    reached, fanout = reached_nodes(stage, sizes)
    assert reached[0] == 300
    assert reached == sorted(reached)
    assert reached[-1] <= sizes.entities
    assert fanout <= 8
    whole = replace(stage, encoder=replace(encoder, fanout=None, negatives_per_step=None))
    assert drawn_nodes(whole, sizes) == sizes.entities
    assert reached_nodes(whole, sizes)[0] == [sizes.entities] * 4


def test_the_largest_mini_batch_keeps_to_its_bound() -> None:
    config = in_rounds("sampling.num_batches=1", "sampling.max_batch=300").sampling
    source, target = largest_batch_of(TASK, config)
    assert max(source, target) <= 300
    wide = largest_batch_of(TASK, replace(config, max_batch=None))
    assert wide == tuple(TASK.num_undecided)
