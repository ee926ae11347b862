"""Texts of entities: several, one or none each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterea.types import Texts

SOME = Texts.of_lists([["Zoë", "Zoe"], [], ["Ann"]])
LISTS = st.lists(st.lists(st.text(max_size=3), max_size=3), max_size=5)


def as_lists(texts: Texts) -> list[list[str]]:
    return [texts.of(entity) for entity in range(texts.num_entities)]


def distinct(texts: list[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def test_of_lists_and_back() -> None:
    assert as_lists(SOME) == [["Zoë", "Zoe"], [], ["Ann"]]
    assert SOME.num_entities == 3
    assert SOME.counts.tolist() == [2, 0, 1]
    assert SOME.owners.tolist() == [0, 0, 2]
    assert SOME.share == pytest.approx(2 / 3)
    assert repr(SOME) == "Texts(3 of 3 entities)"


def test_two_entities_may_have_one_text() -> None:
    assert as_lists(Texts.of_lists([["a"], ["a"]])) == [["a"], ["a"]]


def test_rows_in_any_order_keep_the_order_of_each_entity() -> None:
    values = pa.array(["c", "a", "b", "a", "c"])
    texts = Texts.of_rows(np.array([1, 0, 1, 0, 1]), values, 3)
    assert as_lists(texts) == [["a"], ["c", "b"], []]


def test_the_first_is_the_preferred_one() -> None:
    assert SOME.first(np.array([2, 1, 0])).to_pylist() == ["Ann", None, "Zoë"]
    # The last entity has no text, so its offset is past the last one.
    assert Texts.of_lists([["a"], []]).first(np.array([1])).to_pylist() == [None]


def test_or_else_fills_only_entities_without_a_text() -> None:
    others = Texts.of_lists([["other"], ["b", "c"], ["other"]])
    assert as_lists(SOME.or_else(others)) == [["Zoë", "Zoe"], ["b", "c"], ["Ann"]]
    assert as_lists(others.or_else(SOME)) == as_lists(others)


def test_no_entities() -> None:
    nothing = Texts.of_lists([])
    assert (nothing.num_entities, nothing.share) == (0, 0.0)
    assert as_lists(nothing.take(np.empty(0, dtype=np.int64))) == []


@given(LISTS, st.data())
def test_take_and_without_are_those_of_lists(lists: list[list[str]], data: st.DataObject) -> None:
    texts = Texts.of_lists(lists)
    kept = [distinct(each) for each in lists]
    assert as_lists(texts) == kept
    chosen = data.draw(st.lists(st.sampled_from(range(len(lists))), max_size=6)) if lists else []
    ids = np.array(chosen, dtype=np.int64)
    assert as_lists(texts.take(ids)) == [kept[each] for each in chosen]
    assert as_lists(texts.without(ids)) == [
        [] if number in chosen else each for number, each in enumerate(kept)
    ]
    assert texts.first(ids).to_pylist() == [next(iter(kept[each]), None) for each in chosen]


@given(LISTS, LISTS)
def test_or_else_is_that_of_lists(one: list[list[str]], other: list[list[str]]) -> None:
    size = min(len(one), len(other))
    one, other = one[:size], other[:size]
    found = Texts.of_lists(one).or_else(Texts.of_lists(other))
    assert as_lists(found) == [distinct(a or b) for a, b in zip(one, other, strict=True)]


@pytest.mark.parametrize("offsets", [[0, 2], [0, 4], [1, 3], [0, 2, 1, 3], []])
def test_offsets_that_do_not_fit_are_refused(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets must ascend from 0 to 3"):
        Texts(np.array(offsets, dtype=np.int64), pa.array(["a", "b", "c"]))


def test_a_missing_text_is_refused() -> None:
    with pytest.raises(ValueError, match="Got 1 missing"):
        Texts(np.array([0, 2]), pa.array(["a", None]))
