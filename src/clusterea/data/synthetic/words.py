"""`draw_words`: made-up words that can be pronounced."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_ONSETS = [*"bcdfghjklmnprstvwz", "br", "dr", "gr", "st", "tr"]
_VOWELS = [*"aeiou", *"aeiou", "ai", "ou"]  # twice: single vowels are more common
_ENDINGS = ["", "", "", *"lmnrst"]
_SYLLABLES = pa.array(["".join(parts) for parts in product(_ONSETS, _VOWELS)], pa.large_string())
_LENGTH_SHARES = np.array([0.05, 0.4, 0.4, 0.15])  # of words of one to four syllables


def draw_words(count: int, rng: np.random.Generator) -> pa.Array:
    """`count` distinct words of ASCII letters: a capital, and at least one small letter."""
    words = pa.array([], pa.large_string())
    while len(words) < count:
        missing = count - len(words)
        drawn = _draw_some(missing + missing // 4 + 8, rng)
        words = pa.concat_arrays([words, drawn]).unique()
    return words[:count]


def _draw_some(count: int, rng: np.random.Generator) -> pa.Array:
    """`count` words, some of them repeated."""
    syllables = rng.integers(len(_SYLLABLES), size=(len(_LENGTH_SHARES), count))
    lengths = rng.choice(len(_LENGTH_SHARES), size=count, p=_LENGTH_SHARES) + 1
    endings = pa.array(_ENDINGS, pa.large_string())
    parts = [
        _SYLLABLES.take(pa.array(each, mask=lengths <= position))
        for position, each in enumerate(syllables)
    ]
    parts.append(endings.take(pa.array(rng.integers(len(_ENDINGS), size=count))))
    separator = pa.scalar("", pa.large_string())
    return pc.ascii_capitalize(pc.binary_join_element_wise(*parts, separator, null_handling="skip"))
