"""What all engines do alike. `test_ray_cluster.py` runs these tests on Ray."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import engine_units as units
import numpy as np
import pytest
import torch
from own_network import ON_RAY
from torch import Tensor

from clusterea.engines import Engine, InMemory
from clusterea.engines.out_of_core import OutOfCore
from clusterea.errors import InputError
from clusterea.numerics.knn import Neighbors
from clusterea.types import Pair, Similarity

LARGE = 100_000  # elements; in a file, or in shared memory
KINDS = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32]


@pytest.fixture(params=["ray"] if ON_RAY in os.environ else ["in-memory", "out-of-core"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """Each engine. On Ray, all tests share one."""
    if request.param == "ray":
        yield request.getfixturevalue("ray_cluster")
        return
    made: Engine = InMemory(2) if request.param == "in-memory" else OutOfCore(2, tmp_path)
    with closing(made):
        yield made


def got(engine: Engine, ref: Any) -> Any:
    (value,) = engine.get([ref])
    return value


@pytest.mark.parametrize("size", [3, LARGE])
def test_a_unit_gets_what_was_put(engine: Engine, size: int) -> None:
    rows = torch.arange(float(size))
    held = engine.put(rows)
    assert got(engine, held).equal(rows)
    assert got(engine, engine.submit(units.double, held)).equal(rows * 2)
    assert got(engine, engine.submit(units.double, rows)).equal(rows * 2)


def test_units_take_results_of_units(engine: Engine) -> None:
    once = engine.submit(units.double, torch.ones(LARGE))
    twice = engine.submit(units.double, once)
    assert [float(value.sum()) for value in engine.get([twice, once])] == [4e5, 2e5]


def test_references_in_lists_tuples_and_pairs(engine: Engine) -> None:
    one, two = engine.put(torch.ones(1)), engine.submit(units.double, torch.ones(1))
    found = engine.submit(units.total, [one, torch.ones(1), two], Pair(two, one), ([two], 10))
    assert float(got(engine, found)) == 1 + 1 + 2 + 2 - 1 + 20


def test_parts_are_held_one_by_one(engine: Engine) -> None:
    rows = torch.arange(LARGE)
    first, second = engine.submit_parts(2, units.halves, engine.put(rows))
    assert got(engine, second).equal(rows[LARGE // 2 :])
    assert got(engine, engine.submit(units.double, first)).equal(rows[: LARGE // 2] * 2)
    (only,) = engine.submit_parts(1, units.single, rows)
    assert got(engine, only).equal(rows + 1)


@pytest.mark.parametrize("rows", [3, 5000])
def test_dataclasses_of_tensors(engine: Engine, rows: int) -> None:
    scores = torch.rand(rows, 20, generator=torch.Generator().manual_seed(0))
    found = got(engine, engine.submit(units.neighbors, scores))
    assert isinstance(found, Pair)
    expected = scores.topk(2, dim=1)
    assert isinstance(found.source, Neighbors)
    assert found.source.indices.equal(expected.indices)
    assert found.target.values.equal(expected.values[:, :1])
    similarity = Similarity(
        torch.arange(rows + 1), torch.zeros(rows, dtype=torch.int64), scores[:, 0], Pair(rows, 1)
    )
    back = got(engine, engine.submit(units.transposed, engine.put(similarity)))
    assert back.num_entities == Pair(1, rows)
    assert back.values.equal(scores[:, 0])


@pytest.mark.parametrize("size", [0, 1, 7, LARGE])
@pytest.mark.parametrize("kind", [*KINDS, torch.bool, torch.uint8])
def test_kinds_of_tensors(engine: Engine, kind: torch.dtype, size: int) -> None:
    value = (torch.arange(size) % 3).to(kind)
    assert_same(got(engine, engine.submit(units.same, value)), value)


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor(4),
        torch.empty(0, 3, dtype=torch.float16),
        torch.arange(LARGE * 2).view(2, -1).T,
        torch.arange(LARGE)[::7],
        torch.ones(3).expand(LARGE, 3),
        np.arange(LARGE),
        np.arange(LARGE * 2).reshape(2, -1)[:, ::3],
        np.asfortranarray(np.ones((300, 300))),
        np.array("text"),
        np.zeros((0, 2), dtype=np.int32),
        "x" * 200_000,
        None,
        {"a": [torch.ones(2), (torch.zeros(LARGE, dtype=torch.bool),)], 3: Pair(1, "b")},
        [torch.ones(2)] * 3,
    ],
)
def test_values(engine: Engine, value: Any) -> None:
    assert_same(got(engine, engine.put(value)), value)
    assert_same(got(engine, engine.submit(units.same, value)), value)
    assert_same(got(engine, engine.submit(units.same, engine.put(value))), value)


def assert_same(found: Any, wanted: Any) -> None:
    assert type(found) is type(wanted)
    if isinstance(wanted, Tensor):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert found.equal(wanted)
    elif isinstance(wanted, np.ndarray):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert (found == wanted).all()
    elif isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        assert_same(list(found.values()), list(wanted.values()))
    elif isinstance(wanted, list | tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    else:
        assert found == wanted


def failure(engine: Engine, unit: Any, *arguments: Any) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        engine.get([engine.submit(units.same, engine.submit(unit, *arguments))])
    return caught.value


def test_errors_of_a_unit(engine: Engine) -> None:
    refused = failure(engine, units.refuse, "no such thing.")
    assert isinstance(refused, InputError)
    assert str(refused) == "no such thing."
    assert isinstance(failure(engine, units.divide_by_zero), ZeroDivisionError)
    of_file = failure(engine, units.refuse_file, Path("data.txt"))
    assert isinstance(of_file, InputError)
    assert str(of_file) == "data.txt line 3: is empty."
    assert got(engine, engine.submit(units.same, 3)) == 3  # it goes on


def test_results_come_in_the_order_of_the_references(engine: Engine) -> None:
    refs = [engine.submit(units.slowly, seconds, n) for n, seconds in enumerate((0.2, 0, 0.1, 0))]
    assert engine.get(refs) == [0, 1, 2, 3]
    assert engine.get([refs[2], refs[0], refs[2]]) == [2, 0, 2]
    assert engine.get([]) == []


def test_progress(engine: Engine) -> None:
    seen: list[tuple[int, int]] = []
    refs = [engine.submit(units.slowly, 0.01, n) for n in range(4)]
    assert engine.get(refs, lambda done, every: seen.append((done, every))) == [0, 1, 2, 3]
    assert seen[-1] == (4, 4)
    assert sorted(seen) == seen


def test_a_place_for_a_large_result(engine: Engine) -> None:
    place = engine.empty((3, 40), torch.int64)
    place[:] = torch.arange(120).view(3, 40)
    assert int(place.sum()) == 7140
    assert (place.dtype, place.is_contiguous()) == (torch.int64, True)
    assert engine.empty((0, 4), torch.bool).shape == (0, 4)
    assert got(engine, engine.submit(units.double, place)).equal(place * 2)
