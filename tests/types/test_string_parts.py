"""Strings by part, and what is looked up in parts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterea.types import Names, names, string_parts
from clusterea.types.string_parts import PARTS, StringParts, take_strings

TEXTS = st.lists(st.text(max_size=12), max_size=60)


def large(texts: list[str]) -> pa.Array:
    return pa.array(texts, pa.large_string())


@given(TEXTS, st.integers(0, 3))
def test_each_string_is_in_one_part_and_equal_ones_in_the_same(texts: list[str], cut: int) -> None:
    strings = large(["é", *texts])[cut:]  # a slice shares its buffers with the whole
    parts = StringParts.of(strings)
    assert sorted(parts.order.tolist()) == list(range(len(strings)))
    assert parts.strings.equals(strings.take(pa.array(parts.order)))
    part_of: dict[str, int] = {}
    for part in range(PARTS):
        places = parts.order[parts.range(part)]
        assert (np.diff(places) > 0).all()
        for text in parts.strings[parts.range(part)].to_pylist():
            assert part_of.setdefault(text, part) == part


@given(st.lists(st.text(max_size=12), min_size=1, max_size=20), st.lists(st.text(max_size=9)))
def test_the_part_depends_on_the_string_alone(texts: list[str], before: list[str]) -> None:
    alone, after = StringParts.of(large(texts)), StringParts.of(large([*before, *texts]))
    for part in range(PARTS):
        found = set(after.strings[after.range(part)].to_pylist())
        assert set(alone.strings[alone.range(part)].to_pylist()) <= found


def test_names_are_spread() -> None:
    parts = StringParts.of(large([f"http://example.org/resource/E{i}" for i in range(64_000)]))
    assert max(np.diff(parts.ends)) < 2000


def test_many_strings_are_taken_as_few(monkeypatch: pytest.MonkeyPatch) -> None:
    strings, places = large([str(i) for i in range(50)]), np.arange(100) % 37
    monkeypatch.setattr(string_parts, "_TAKEN", 8)
    assert take_strings(strings, places).to_pylist() == [str(i) for i in places]


@pytest.mark.parametrize("least", [0, 1000])
def test_names_are_looked_up_in_parts_as_at_once(
    least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "LEAST", least)
    known = Names([f"e{i * 7 % 501}" for i in range(501)])
    asked = [f"e{i}" for i in range(400, 600)] + ["e3", "e3"]
    expected = [known.arrow.to_pylist().index(name) if name in known else -1 for name in asked]
    assert known.ids_of(asked).tolist() == expected
    assert known.ids_of(pa.chunked_array([asked[:50], asked[50:]])).tolist() == expected
    assert Names(known.arrow[100:]).ids_of(["e3", known[100]]).tolist()[1] == 0
