"""Pairs of equal names: unique on both sides, and clear."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clusterea.data.equal_names import equal_names
from clusterea.types import Pair, Texts

Lists = Sequence[Sequence[str]]


def found(
    source: Lists, target: Lists, never: tuple[Sequence[int], Sequence[int]] = ((), ())
) -> set[tuple[int, int]]:
    hidden = (
        Pair(*never)
        .zip(Pair(len(source), len(target)))
        .map(lambda side: np.isin(np.arange(side[1]), np.array(side[0], dtype=np.int64)))
    )
    pairs = equal_names(Pair(source, target).map(Texts.of_lists), hidden)
    assert pairs.dtype == np.int64
    rows = [tuple(row) for row in pairs.tolist()]
    assert len(rows) == len(set(rows))
    return {(left, right) for left, right in rows}


def twin(
    source: Lists, target: Lists, never: tuple[Sequence[int], Sequence[int]]
) -> set[tuple[int, int]]:
    """The same by loops."""
    shared = set()
    for left, mine in enumerate(source):
        for right, theirs in enumerate(target):
            for text in set(mine) & set(theirs):
                alone = sum(text in each for each in source) == 1
                alone &= sum(text in each for each in target) == 1
                if alone and left not in never[0] and right not in never[1]:
                    shared.add((left, right))
    return {
        pair
        for pair in shared
        if sum(pair[0] == other[0] for other in shared) == 1
        and sum(pair[1] == other[1] for other in shared) == 1
    }


def test_equal_names_are_pairs() -> None:
    assert found([["ann"], ["bob"], ["eve"]], [["eve"], ["dan"], ["ann"]]) == {(0, 2), (2, 0)}


def test_a_name_of_two_entities_of_one_side_is_left_out() -> None:
    assert found([["ann"], ["ann"], ["bob"]], [["ann"], ["bob"]]) == {(2, 1)}
    assert found([["ann"], ["bob"]], [["ann"], ["bob"], ["ann"]]) == {(1, 1)}


def test_one_of_several_names_is_enough() -> None:
    assert found([["ann", "anna", "annie"], []], [["eve"], ["anne", "annie"]]) == {(0, 1)}


def test_two_common_names_of_one_pair_are_one_pair() -> None:
    assert found([["ann", "anna"]], [["anna", "ann"]]) == {(0, 0)}


def test_names_that_lead_to_several_are_left_out() -> None:
    assert found([["ann", "bob"], ["eve"]], [["ann"], ["bob"], ["eve"]]) == {(1, 2)}
    assert found([["ann"], ["bob"], ["eve"]], [["ann", "bob"], ["eve"]]) == {(2, 1)}


def test_entities_that_are_left_out_still_make_a_name_ambiguous() -> None:
    names = [["ann"], ["ann"], ["bob"]], [["ann"], ["bob"]]
    assert found(*names, never=([0], [])) == {(2, 1)}
    assert found(*names, never=([0, 2], [])) == set()


def test_nothing_in_common() -> None:
    assert found([["ann"]], [["bob"]]) == set()
    assert found([[]], [[]]) == set()
    assert found([], []) == set()


NAMES = st.lists(st.lists(st.sampled_from("abcdef"), max_size=3), max_size=5)


@given(NAMES, NAMES, st.sets(st.integers(0, 4), max_size=2), st.sets(st.integers(0, 4), max_size=2))
def test_it_is_as_by_loops(
    source: list[list[str]], target: list[list[str]], one: set[int], other: set[int]
) -> None:
    never = sorted(one), sorted(other)
    assert found(source, target, never) == twin(source, target, never)
