"""Sorting by ranges gives what sorting at once gives."""

from __future__ import annotations

import numpy as np
import pytest

from clusterea.data import sorted_keys
from clusterea.data.sorted_keys import first_places, has_repeats, of_ranges, sorted_ranges
from clusterea.types import IntArray

DRAW = np.random.default_rng(0)
KEYS = {
    "distinct": DRAW.permutation(1000),
    "few values": DRAW.integers(3, size=1000),
    "one value": np.full(1000, 5),
    "mostly one value": np.where(DRAW.random(1000) < 0.9, 7, DRAW.integers(-50, 50, 1000)),
    "none": np.empty(0, dtype=np.int64),
}


@pytest.fixture(params=[1, 5])
def _few_are_many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_keys, "LEAST", 1)
    monkeypatch.setattr(sorted_keys, "_SAMPLE", 50)
    monkeypatch.setattr(sorted_keys, "available_cpus", lambda: request.param)


@pytest.mark.usefixtures("_few_are_many")
@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_as_at_once(keys: IntArray) -> None:
    assert np.array_equal(np.concatenate(sorted_ranges(keys)), np.sort(keys))
    assert has_repeats(keys) == (len(set(keys.tolist())) < len(keys))
    first = np.sort(np.unique(keys, return_index=True)[1])
    assert np.array_equal(first_places(keys), first)


def test_keys_are_cut_into_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_keys, "LEAST", 1)
    monkeypatch.setattr(sorted_keys, "_SAMPLE", 100)
    monkeypatch.setattr(sorted_keys, "available_cpus", lambda: 4)
    keys = KEYS["distinct"].view(np.uint64)
    sizes = of_ranges(keys, lambda range_: len(keys[range_]))
    assert len(sizes) == 4
    assert max(sizes) < 400
