from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clusterea.errors import InputError
from clusterea.evaluation import judge

LINKS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12)


def array(links: list[tuple[int, int]]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(links, dtype=np.int64).reshape(-1, 2)


@given(LINKS, LINKS.filter(bool))
def test_scores_are_those_of_sets(
    links: list[tuple[int, int]], test_links: list[tuple[int, int]]
) -> None:
    correct = len(set(links) & set(test_links))
    scores = judge(array(links), torch.from_numpy(array(test_links)))
    assert scores.precision == (correct / len(set(links)) if links else 0)
    assert scores.recall == correct / len(set(test_links))


def test_links_of_other_entities_count_against() -> None:
    assert judge(array([(0, 0), (7, 9)]), array([(0, 0)])).precision == 0.5


def test_nothing_to_judge_by_is_refused() -> None:
    with pytest.raises(InputError, match="there are no test links to judge by"):
        judge(array([(0, 0)]), array([]))
