"""What the units of a run are expected to take."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
import torch
from small_runs import benchmark

from clusterea.config import preset
from clusterea.engines import InMemory
from clusterea.engines.packing import pack
from clusterea.pipeline import align
from clusterea.pipeline.memory import expected_memory
from clusterea.pipeline.shard_plan import shard_plan

TASK = benchmark((6000, 5000), degree=5).task
CPU = torch.device("cpu")


def test_numbers_of_units_are_theirs() -> None:
    """They are copied, because the modules of the units load torch."""
    rows, own = (
        import_module(f"clusterea.{name}") for name in ("numerics.rows", "pipeline.shard_plan")
    )
    assert own.TILE == rows.TILE


@pytest.mark.parametrize("name", ["fast", "paper", "default"])
def test_more_shards_take_less_memory_each(name: str) -> None:
    config = preset(name, 6000)
    plans = [shard_plan(TASK, config, shards) for shards in (1, 2, 4, 8)]
    units = [each.unit for each in plans]
    assert units == sorted(units, reverse=True)
    assert all(each.worker > each.unit > 0 for each in plans)


def test_a_run_in_shards_takes_less_memory() -> None:
    config = preset("fast", 6000)
    whole, one, cut = (expected_memory(TASK, config, CPU, shards) for shards in (None, 1, 8))
    assert whole == one
    assert cut.host < whole.host


class Counting(InMemory):
    """Counts the bytes of the arrays that units make."""

    def __init__(self, shards: int) -> None:
        super().__init__(shards)
        self.bytes = 0

    def _counted(self, value: Any) -> Any:
        self.bytes += sum(buffer.nbytes for buffer in pack(value)[1])
        return value

    def put(self, value: Any) -> Any:
        return self._counted(value)

    def submit(self, unit: Callable[..., Any], *arguments: Any) -> Any:
        return self._counted(super().submit(unit, *arguments))

    def submit_parts(self, parts: int, unit: Callable[..., Any], *arguments: Any) -> list[Any]:
        return [self._counted(part) for part in super().submit_parts(parts, unit, *arguments)]


@pytest.mark.parametrize("search", ["exact", "approximate"])
def test_what_units_exchange(search: str) -> None:
    settings = ["propagation.features=256", "propagation.dimension=128", f"fusion.search={search}"]
    config = preset("fast", 6000, settings=settings)
    engine = Counting(shards := 5)
    align(TASK, config, CPU, engine=engine)
    planned = shard_plan(TASK, config, shards).exchanged
    assert 0.6 < planned / engine.bytes < 1.7
