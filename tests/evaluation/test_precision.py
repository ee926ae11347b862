"""`estimated_precision`: simulated reviewers, whose links have a known precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from clusterea.evaluation.precision import (
    PrecisionEstimate,
    estimated_precision,
    now_and_later,
    wilson,
)
from clusterea.types import Alignment, Answer, Pair, Verdict

NOBODY = torch.empty(0, dtype=torch.int64)
Choose = Callable[[NDArray[np.bool_], np.random.Generator], NDArray[np.float64]]


def linked(targets: dict[int, int], confidence: float = 0.5) -> Alignment:
    """Source entity → target entity."""
    links = torch.tensor([*targets.items()], dtype=torch.int64).reshape(-1, 2)
    return Alignment(links, torch.full((len(links),), confidence), Pair(NOBODY, NOBODY))


def half_widths(alignment: Alignment, answers: Sequence[Answer]) -> tuple[float, float]:
    """Of the interval now, and after more answers."""
    now, later = now_and_later(alignment, answers)
    return now.half_width, later.half_width


def straight(size: int, confidence: float = 0.5) -> Alignment:
    """Links each source entity to the target of the same number."""
    return linked({each: each for each in range(size)}, confidence)


def said(
    source: int | None, target: int | None, verdict: Verdict, *, random: bool = True
) -> Answer:
    return Answer(source, target, verdict, is_random=random)


def review(
    is_right: NDArray[np.bool_], asked: int, choose: Choose, rng: np.random.Generator
) -> list[Answer]:
    """The answers of a person who is asked as `questions` does: every fourth link is reserved."""
    order = rng.permutation(len(is_right))
    reserved, others = np.split(order, [len(order) // 4])
    chosen = others[np.argsort(-choose(is_right, rng)[others], kind="stable")]
    answers = []
    for number in range(asked):
        random = number % 4 == 3
        at = int(reserved[number // 4] if random else chosen[number - (number + 1) // 4])
        answers.append(said(at, at, "same" if is_right[at] else "different", random=random))
    return answers


def by_wrongness(is_right: NDArray[np.bool_], _: np.random.Generator) -> NDArray[np.float64]:
    """Asks about all wrong links first."""
    return (~is_right).astype(np.float64)


def mostly_wrong(is_right: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.float64]:
    """Asks about wrong links more often."""
    return ~is_right * 0.7 + rng.random(len(is_right))


def anything(is_right: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.float64]:
    return rng.random(len(is_right))


CASES = [
    (2000, 160, 0.9),
    (2000, 160, 0.6),
    (400, 300, 0.8),  # most are answered, so the size of the population matters
    (1000, 400, 0.85),
]


@pytest.mark.parametrize("choose", [by_wrongness, mostly_wrong, anything])
@pytest.mark.parametrize(("size", "asked", "rate"), CASES)
def test_the_interval_covers_the_truth(size: int, asked: int, rate: float, choose: Choose) -> None:
    alignment = straight(size)
    covered, cut, errors = 0, 0, []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        is_right = rng.random(size) < rate
        answers = review(is_right, asked, choose, rng)
        told = estimated_precision(alignment, answers)
        covered += told.low <= is_right.mean() <= told.high
        errors.append(told.value - is_right.mean())
        wrong = sum(each.verdict == "different" for each in answers)
        cut += told.value == pytest.approx(1 - wrong / size)
        assert (told.sampled, told.known) == (asked // 4, asked - asked // 4)
        assert told.links == size
    assert covered >= 0.93 * 300
    noise = 3 * np.std(errors) / np.sqrt(len(errors))
    # Values above what is known are cut off, so then some errors on the high side are missing.
    assert -noise - (0.012 if cut else 0) < np.mean(errors) < noise


def test_corrected_links_do_not_make_the_others_right() -> None:
    """After the next run the accepted pairs are seeds, and the sample has only right ones."""
    answers = [said(each, each, "same") for each in range(30)]
    for each in range(30, 40):
        answers += [said(each, each, "different"), said(each, each + 1000, "same")]
    told = estimated_precision(linked({each: each for each in range(40, 440)}), answers)
    assert (told.sampled, told.links) == (40, 440)
    assert told.value == pytest.approx((40 + 0.75 * 400) / 440)


def test_wrong_links_that_were_found_are_not_predicted_again() -> None:
    """Of 100 links 20 are wrong by the sample of 10; all 20 were found, two of them at random."""
    answers = [said(each, each, "same" if each < 8 else "different") for each in range(10)]
    answers += [said(each, each, "different", random=False) for each in range(10, 28)]
    assert estimated_precision(straight(100), answers).value == pytest.approx(0.8)


class TestWithoutRandomAnswers:
    def test_the_mean_confidence_and_any_rate(self) -> None:
        told = estimated_precision(straight(10, 0.7), [])
        assert told.value == pytest.approx(0.7)
        assert (told.low, told.high) == (0, 1)
        assert (told.sampled, told.known, told.links) == (0, 0, 10)

    def test_what_is_known_bounds_it(self) -> None:
        answers = [said(0, 0, "same", random=False), said(1, 1, "different", random=False)]
        told = estimated_precision(straight(10, 0.5), answers)
        assert [told.low, told.value, told.high] == pytest.approx([0.1, 0.5, 0.9])
        assert told.known == 2

    def test_no_links(self) -> None:
        assert estimated_precision(linked({}), []) == PrecisionEstimate(0, 0, 1, 0, 0, 0)


class TestVerdicts:
    @pytest.mark.parametrize(
        ("answers", "right"),
        [
            ([said(0, 0, "same")], 1),
            ([said(0, 0, "different")], 0),
            ([said(0, 5, "same")], 0),  # another target
            ([said(0, 0, "different"), said(0, 5, "same")], 0),
            ([said(0, None, "none")], 0),
            ([said(0, 0, "same"), said(0, 0, "different")], 0),  # the last one counts
        ],
    )
    def test_a_sampled_link(self, answers: list[Answer], right: int) -> None:
        told = estimated_precision(linked({0: 0}), answers)
        assert (told.value, told.low, told.high) == (right, right, right)
        assert (told.sampled, told.known, told.links) == (1, 0, 1)

    @pytest.mark.parametrize(
        ("answers", "right"),
        [
            ([said(0, 0, "same", random=False)], 1),
            ([said(0, 5, "same", random=False)], 0),
            ([said(None, 0, "none", random=False)], 0),
        ],
    )
    def test_a_known_link(self, answers: list[Answer], right: int) -> None:
        told = estimated_precision(linked({0: 0}), answers)
        assert (told.value, told.low, told.high) == (right, right, right)
        assert (told.sampled, told.known, told.links) == (0, 1, 1)

    def test_the_target_of_an_accepted_pair(self) -> None:
        """Source 7 has no link, so its accepted pair is one; target 0 is not that of source 0."""
        told = estimated_precision(linked({0: 0}), [said(7, 0, "same", random=False)])
        assert (told.value, told.known, told.links) == (0.5, 2, 2)

    def test_unsure_links_are_left_out(self) -> None:
        told = estimated_precision(straight(10), [said(0, 0, "unsure")])
        assert (told.sampled, told.links) == (0, 9)

    def test_undone_answers_are_none(self) -> None:
        told = estimated_precision(straight(10), [said(0, 0, "different"), said(0, 0, "undone")])
        assert told == estimated_precision(straight(10), [])

    def test_a_new_link_of_a_sampled_entity_counts_with_its_confidence(self) -> None:
        told = estimated_precision(linked({0: 1}, 0.6), [said(0, 0, "different")])
        assert told.value == pytest.approx(0.6)


class TestHalfWidths:
    def test_more_answers_narrow_the_interval(self) -> None:
        answers = [said(each, each, "same" if each % 5 else "different") for each in range(20)]
        now, later = half_widths(straight(1000), answers)
        assert now == estimated_precision(straight(1000), answers).half_width
        more = [said(each, each, "same" if each % 5 else "different") for each in range(40)]
        assert later == pytest.approx(estimated_precision(straight(1000), more).half_width)
        assert 0 < later < now

    def test_it_is_zero_when_all_are_answered(self) -> None:
        answers = [said(each, each, "same") for each in range(5)]
        assert half_widths(straight(15), answers)[1] == pytest.approx(0)

    def test_before_the_first_answer(self) -> None:
        now, later = half_widths(straight(1000, 0.9), [])
        assert now == 0.5
        assert later < 0.2


@given(st.floats(0, 1), st.floats(0, 1e6))
def test_wilson_holds_the_rate(rate: float, size: float) -> None:
    low, high = wilson(rate, size)
    assert 0 <= low <= rate <= high <= 1


def test_wilson_as_published() -> None:
    """Newcombe (1998), table I: 81 of 263 and 0 of 20."""
    assert [*wilson(81 / 263, 263)] == pytest.approx([0.2553, 0.3662], abs=1e-4)
    assert [*wilson(0, 20)] == pytest.approx([0, 0.1611], abs=1e-4)


entities = st.integers(0, 5)
verdicts: st.SearchStrategy[Verdict] = st.sampled_from(["same", "different", "unsure", "undone"])
pair_answers = st.builds(Answer, entities, entities, verdicts, is_random=st.booleans())
lone_answers = st.one_of(
    st.builds(lambda one, flag: said(one, None, "none", random=flag), entities, st.booleans()),
    st.builds(lambda one, flag: said(None, one, "none", random=flag), entities, st.booleans()),
)


@given(
    st.dictionaries(entities, entities),
    st.lists(st.one_of(pair_answers, lone_answers), max_size=12),
    st.floats(0, 1),
)
def test_bounds_whatever_is_answered(
    targets: dict[int, int], answers: list[Answer], confidence: float
) -> None:
    alignment = linked(targets, confidence)
    told = estimated_precision(alignment, answers)
    assert 0 <= told.low <= told.value + 1e-9
    assert told.value - 1e-9 <= told.high <= 1 + 1e-9
    now, later = half_widths(alignment, answers)
    assert now == told.half_width
    assert 0 <= later <= now + 1e-9
