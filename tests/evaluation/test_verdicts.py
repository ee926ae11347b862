"""`verdicts`, against sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterea.evaluation.verdicts import verdicts

PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


@given(PAIRS, PAIRS)
def test_as_sets_say(links: list[tuple[int, int]], known: list[tuple[int, int]]) -> None:
    told, right = verdicts(
        *(np.array(each, dtype=np.int64).reshape(-1, 2) for each in (links, known))
    )
    sources, targets = {s for s, _ in known}, {t for _, t in known}
    assert told.tolist() == [s in sources or t in targets for s, t in links]
    assert right.tolist() == [link in known for link in links]


@pytest.mark.parametrize("size", [1 << 20, 1 << 31])
def test_ids_of_any_size(size: int) -> None:
    links = np.array([[size, 0], [0, size], [size, size]])
    told, right = verdicts(links, np.array([[0, size]]))
    assert told.tolist() == [False, True, True]
    assert right.tolist() == [False, True, False]
