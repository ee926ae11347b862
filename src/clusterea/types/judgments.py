"""`judgments`: what answers say about pairs of entities."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from clusterea.types.arrays import IntArray
from clusterea.types.decisions import Answer, Decisions


class Judgment(IntEnum):
    """Of a pair."""

    WRONG = 0
    RIGHT = 1
    UNKNOWN = 2  # no answer tells
    UNSURE = 3  # a person could not tell


def judgments(pairs: IntArray, answers: Sequence[Answer]) -> NDArray[np.int8]:
    """(pairs,): a `Judgment` of each.

    A pair is wrong if it was rejected, if one of its entities was accepted with another, or if one
    of them has no counterpart.
    """
    held = Decisions.of(answers)
    last = {(each.source, each.target): each.verdict for each in answers}
    unsure = np.array(
        [key for key, verdict in last.items() if verdict == "unsure" and None not in key]
    )
    width = 1 + int(pairs[:, 1].max(initial=0))

    def among(others: IntArray) -> NDArray[np.bool_]:
        others = others.reshape(-1, 2).astype(np.int64)
        others = others[others[:, 1] < width]
        return np.isin(pairs[:, 0] * width + pairs[:, 1], others[:, 0] * width + others[:, 1])

    found = np.full(len(pairs), Judgment.UNKNOWN, np.int8)
    found[among(unsure)] = Judgment.UNSURE
    is_wrong = among(held.rejected)
    for column, alone in enumerate(held.alone):
        taken = np.concatenate([held.accepted[:, column], alone])
        is_wrong |= np.isin(pairs[:, column], taken)
    found[is_wrong] = Judgment.WRONG
    found[among(held.accepted)] = Judgment.RIGHT
    return found
