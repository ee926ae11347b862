"""`judgments`: what answers say about pairs of entities."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from clusterea.types.arrays import IntArray
from clusterea.types.decisions import Answer, Decisions
from clusterea.types.links import are_among


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
        [key for key, verdict in last.items() if verdict == "unsure" and None not in key],
        dtype=np.int64,
    ).reshape(-1, 2)
    found = np.full(len(pairs), Judgment.UNKNOWN, np.int8)
    found[are_among(pairs, unsure)] = Judgment.UNSURE
    is_wrong = are_among(pairs, held.rejected)
    for column, alone in enumerate(held.alone):
        taken = np.concatenate([held.accepted[:, column], alone])
        is_wrong |= np.isin(pairs[:, column], taken)
    found[is_wrong] = Judgment.WRONG
    found[are_among(pairs, held.accepted)] = Judgment.RIGHT
    return found
