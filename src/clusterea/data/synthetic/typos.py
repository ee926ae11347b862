"""`misspell`: one typo in each text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_REPLACE, _DELETE, _INSERT, _SWAP = range(4)
_SPACE, _FIRST_LETTER, _LETTERS = ord(" "), ord("a"), 26
_NOWHERE = np.iinfo(np.int64).max  # after every position


def misspell(texts: pa.Array, rng: np.random.Generator) -> pa.Array:
    """Each text with a letter replaced, deleted or inserted, or with two neighbors swapped.

    `texts` are words as of `draw_words`, separated by a space. The first letter of a word is never
    changed. Every result differs from its text.
    """
    if not len(texts):
        return texts
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    letters = np.frombuffer(data, np.uint8)
    starts, ends = bounds[:-1], bounds[1:]

    # A position anywhere; from a space or the first letter of a word, on to its second letter.
    spots = starts + (rng.random(len(texts)) * (ends - starts)).astype(np.int64)
    spots += letters[spots] == _SPACE
    spots += (spots == starts) | (letters[spots - 1] == _SPACE)
    here, following = letters[spots], letters[np.minimum(spots + 1, ends - 1)]
    typo = rng.integers(4, size=len(texts))
    typo[(typo == _SWAP) & ((following == here) | (following == _SPACE))] = _REPLACE

    # Copy all texts, with a gap where a letter is inserted, and then write the new letters.
    lengths = ends - starts + (typo == _INSERT) - (typo == _DELETE)
    new_bounds = np.concatenate([[0], np.cumsum(lengths)])
    new_starts = new_bounds[:-1]
    origin = np.arange(new_bounds[-1]) + np.repeat(starts - new_starts, lengths)
    deleted, inserted = (np.where(typo == which, spots, _NOWHERE) for which in (_DELETE, _INSERT))
    origin += np.repeat(deleted, lengths) <= origin
    origin -= np.repeat(inserted, lengths) < origin
    copy = letters[origin]
    places = new_starts + spots - starts
    step = rng.integers(1, _LETTERS, size=len(texts))
    other = _FIRST_LETTER + (here - _FIRST_LETTER + step) % _LETTERS
    written = (typo == _REPLACE) | (typo == _INSERT)
    copy[places[written]] = other[written]
    swapped = typo == _SWAP
    copy[places[swapped]] = following[swapped]
    copy[places[swapped] + 1] = here[swapped]
    buffers = [None, pa.py_buffer(new_bounds), pa.py_buffer(copy)]
    return pa.Array.from_buffers(pa.large_string(), len(texts), buffers)
