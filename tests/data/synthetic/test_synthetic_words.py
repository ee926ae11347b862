from __future__ import annotations

import re

import numpy as np
import pytest

from clusterea.data.synthetic.words import draw_words


@pytest.mark.parametrize("count", [0, 1, 5_000])
def test_words_are_distinct_and_as_many_as_asked(count: int) -> None:
    words = draw_words(count, np.random.default_rng(0)).to_pylist()
    assert len(words) == len(set(words)) == count


def test_words_can_be_pronounced() -> None:
    words = draw_words(2_000, np.random.default_rng(0)).to_pylist()
    syllables = re.compile(r"([a-z][rt]?[aeiou]{1,2})+[a-z]?")
    assert all(syllables.fullmatch(word.lower()) for word in words)
    assert all(re.fullmatch("[A-Z][a-z]+", word) for word in words)
    assert {len(re.findall("[aeiou]+", word)) for word in words} == {1, 2, 3, 4}
