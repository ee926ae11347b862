from __future__ import annotations

import numpy as np
import pytest

from clusterea.types import Answer
from clusterea.types.judgments import Judgment, judgments


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([], Judgment.UNKNOWN),
        ([Answer(3, 4, "same")], Judgment.RIGHT),
        ([Answer(3, 4, "different")], Judgment.WRONG),
        ([Answer(3, 900, "same")], Judgment.WRONG),
        ([Answer(9, 4, "same")], Judgment.WRONG),
        ([Answer(3, None, "none")], Judgment.WRONG),
        ([Answer(None, 4, "none")], Judgment.WRONG),
        ([Answer(3, 9, "different"), Answer(9, 4, "different")], Judgment.UNKNOWN),
        ([Answer(2, 9, "same"), Answer(None, 3, "none")], Judgment.UNKNOWN),
        ([Answer(3, 4, "same"), Answer(3, 4, "undone")], Judgment.UNKNOWN),
        ([Answer(3, 4, "same"), Answer(3, 4, "unsure")], Judgment.UNSURE),
        ([Answer(3, 4, "unsure"), Answer(3, 4, "same")], Judgment.RIGHT),
        ([Answer(3, 4, "unsure"), Answer(3, 9, "same")], Judgment.WRONG),
    ],
)
def test_what_answers_say_about_a_pair(answers: list[Answer], expected: Judgment) -> None:
    assert judgments(np.array([[3, 4]]), answers).tolist() == [expected]


def test_pairs_are_told_apart() -> None:
    """Also where an answer has a target that no pair has."""
    pairs = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 1]])
    told = judgments(pairs, [Answer(1, 1, "different"), Answer(0, 3, "different")])
    assert (told == Judgment.WRONG).tolist() == [False, False, False, True, False]
    assert judgments(pairs[:0], [Answer(1, 1, "same")]).tolist() == []
