"""Trust in names and features: planted gains, none where nothing is told, and the same bits."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from clusterea.fusion import trust as module
from clusterea.fusion.trust import (
    FEWEST,
    LEAST,
    MOST_EXAMPLES,
    SEGMENTS,
    UNITS_OF_ONE,
    USUAL,
    Trust,
    fit_trust,
    surest_pairs,
)
from clusterea.types import Pair


def draw(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_rows(count: int, seed: int, dim: int = 64) -> Tensor:
    return normalize(torch.randn(count, dim, generator=draw(seed)), dim=1)


def diagonal(count: int) -> Tensor:
    return torch.arange(count).repeat(2, 1).T


def noisy(rows: Tensor, noise: float, seed: int) -> Tensor:
    return normalize(rows + noise * torch.randn(rows.shape, generator=draw(seed)) / 8, dim=1)


EQUAL = Pair(random_rows(400, 0), random_rows(400, 0))
RANDOM = Pair(random_rows(400, 1), random_rows(400, 2))


def shuffled(contents: Pair[Tensor]) -> Pair[Tensor]:
    """Every name is that of another entity."""
    return Pair(contents.source, contents.target.roll(1, dims=0))


def labels(share: float, num_names: int, count: int, seed: int) -> Pair[Tensor]:
    """Each entity has one of so many names: a share of the pairs the same, the others any."""
    rng = np.random.default_rng(seed)
    own, other = rng.integers(0, num_names, (2, count))
    other = np.where(rng.random(count) < share, own, other)
    rows = torch.eye(num_names)
    return Pair(rows[torch.from_numpy(own)], rows[torch.from_numpy(other)])


class TestFitted:
    @pytest.mark.parametrize(
        ("share", "num_names"), [(0.6, 50), (0.3, 100), (0.9, 30), (0.6, 3), (0.9, 5)]
    )
    def test_the_planted_gain_is_found(self, share: float, num_names: int) -> None:
        """Bayes: the chance of equal names for a pair and for others, over that of unequal ones."""
        planted = log((share * num_names + 1 - share) / (1 - share))
        found = fit_trust([labels(share, num_names, 1500, 0)], diagonal(1000))
        assert float(found.most) == pytest.approx(planted, abs=0.35)

    def test_equal_names_are_worth_much(self) -> None:
        found = fit_trust([EQUAL], diagonal(200))
        assert float(found.most) > log(400)  # more than all others weigh together
        assert float(found.gain(0, torch.tensor(0.1))) < 1

    @pytest.mark.parametrize("count", [FEWEST, 60, 400])
    @pytest.mark.parametrize("contents", [RANDOM, shuffled(EQUAL)], ids=["random", "shuffled"])
    def test_what_tells_nothing_gains_nothing(self, contents: Pair[Tensor], count: int) -> None:
        found = fit_trust([contents], diagonal(count))
        assert not found.gains.any()

    def test_nor_does_what_most_entities_share(self) -> None:
        """Though none of the nearest rivals has another name: those farther off count too."""
        same_name = Pair(torch.ones(400, 1), torch.ones(400, 1))
        assert not fit_trust([same_name], diagonal(300)).gains.any()
        assert not fit_trust([shuffled(labels(1.0, 3, 1500, 0))], diagonal(1000)).gains.any()

    @pytest.mark.parametrize("count", [FEWEST, 300])
    def test_nor_does_chance(self, count: int) -> None:
        """Of random vectors, some examples are nearer than all rivals: that is no evidence."""
        for seed in range(20):
            contents = Pair(random_rows(400, 100 + seed), random_rows(400, 500 + seed))
            assert not fit_trust([contents], diagonal(count)).gains.any()

    @pytest.mark.parametrize("count", [FEWEST, 40])
    def test_a_few_examples_of_good_names_suffice(self, count: int) -> None:
        assert float(fit_trust([labels(0.6, 50, 400, 0)], diagonal(count)).most) > 2

    def test_nothing_but_zeros_gain_nothing(self) -> None:
        found = fit_trust([EQUAL.map(torch.zeros_like)], diagonal(400))
        assert not found.gains.any()
        assert found.slope(0) == 0

    @pytest.mark.parametrize("noise", [0.3, 2.0])
    def test_vectors_need_not_be_equal(self, noise: float) -> None:
        contents = Pair(EQUAL.source, noisy(EQUAL.target, noise, 7))
        usual = (contents.source * contents.target).sum(1).median()
        found = fit_trust([contents], diagonal(400))
        assert float(found.gain(0, usual)) > 5
        assert float(found.gain(0, usual / 4)) < 2.5

    def test_wrong_examples_lower_it(self) -> None:
        examples = diagonal(400)
        examples[:200, 1] = examples[:200, 1].roll(1)
        half, whole = (float(fit_trust([EQUAL], each).most) for each in (examples, diagonal(400)))
        assert LEAST < half < whole - 1

    def test_it_works_both_ways(self) -> None:
        """A pair is looked for from both sides, also where the names of one side are ambiguous."""
        examples = diagonal(300)
        contents = labels(0.6, 50, 400, 1)
        ambiguous = Pair(contents.source, torch.cat([contents.target, *[contents.target[:40]] * 9]))
        one = fit_trust([ambiguous], examples)
        other = fit_trust([ambiguous.swap()], examples.flip(1))
        torch.testing.assert_close(one.gains, other.gains, rtol=0, atol=0.05)
        assert torch.equal(one.knots, other.knots)

    def test_arguments_stay_as_they_are(self) -> None:
        before, examples = EQUAL.map(torch.clone), diagonal(100)
        fit_trust([EQUAL], examples)
        assert all(torch.equal(*side) for side in EQUAL.zip(before))
        assert torch.equal(examples, diagonal(100))


class TestSeveral:
    def test_only_the_one_that_tells_something_gains(self) -> None:
        found = fit_trust([RANDOM, EQUAL], diagonal(300))
        assert found.num_encoders == 2
        assert float(found.most[0]) == 0
        assert float(found.most[1]) > log(400)

    def test_what_both_say_is_not_counted_twice(self) -> None:
        contents = labels(0.6, 50, 800, 0)
        alone = float(fit_trust([contents], diagonal(600)).most)
        found = fit_trust([contents, contents.map(torch.clone)], diagonal(600))
        assert float(found.most.sum()) == pytest.approx(alone, abs=0.3)

    def test_two_independent_ones_add_up(self) -> None:
        both = [labels(0.6, 50, 800, seed) for seed in (0, 1)]
        alone = [float(fit_trust([each], diagonal(600)).most) for each in both]
        found = fit_trust(both, diagonal(600))
        assert found.most.tolist() == pytest.approx(alone, abs=0.4)


class TestShape:
    @pytest.mark.parametrize("noise", [0.0, 1.0, 3.0])
    @pytest.mark.parametrize("count", [150, 400])
    def test_gains_rise_from_zero(self, noise: float, count: int) -> None:
        rows = EQUAL.source[:count]
        found = fit_trust([Pair(rows, noisy(rows, noise, 3))], diagonal(120))
        assert found.knots.shape == found.gains.shape == (1, SEGMENTS + 1)
        assert (found.knots.diff() > 0).all()
        assert (found.gains.diff() >= 0).all()
        assert float(found.gains[0, 0]) == 0
        assert float(found.knots[0, -1]) == 1
        assert float(found.most) > LEAST

    def test_without_a_vector_there_is_no_gain(self) -> None:
        """Though among few entities, most cosines that are compared are below zero."""
        rows = random_rows(130, 0, 8)
        found = fit_trust([Pair(rows, noisy(rows, 3.0, 1))], diagonal(130))
        assert float(found.most) > LEAST
        assert found.gain(0, torch.tensor([-1.0, -0.3, 0.0])).tolist() == [0, 0, 0]

    def test_gains_and_knots_are_rounded(self) -> None:
        found = fit_trust([labels(0.6, 50, 400, 1), EQUAL], diagonal(300))
        for values in (found.gains, found.knots[:, 0]):
            units = values * UNITS_OF_ONE
            assert torch.equal(units, units.round())

    @given(st.lists(st.floats(-1, 1.001), max_size=20))
    def test_a_gain_is_linear_between_knots(self, cosines: list[float]) -> None:
        knots, gains = np.linspace(0.2, 1, 10), np.cumsum([0, 0.5, 0, 1, 2, 0, 0.25, 1, 1, 0.1])
        trust = Trust(
            torch.from_numpy(np.stack([knots, knots / 2])),
            torch.from_numpy(np.stack([gains, gains[::-1].cumsum()])),
        )
        found = trust.gain(0, torch.tensor(cosines, dtype=torch.float64))
        assert found.dtype == torch.float64
        np.testing.assert_allclose(found, np.interp(cosines, knots, gains), atol=1e-9)

    def test_slope_and_most(self) -> None:
        knots = torch.linspace(0.5, 1, 10).double().repeat(2, 1)
        trust = Trust(knots, torch.stack([torch.zeros(10), torch.linspace(0, 3, 10)]).double())
        assert trust.most.tolist() == [0, 3]
        assert [trust.slope(0), trust.slope(1)] == pytest.approx([0, 6])

    def test_shapes_must_agree(self) -> None:
        with pytest.raises(ValueError, match="knots and gains must have one shape"):
            Trust(torch.zeros(1, 10), torch.zeros(1, 9))

    def test_stored_and_read_again(self) -> None:
        found = fit_trust([EQUAL, RANDOM], diagonal(100))
        again = Trust.from_tensors(found.tensors(), Pair(400, 400))
        assert torch.equal(again.knots, found.knots)
        assert torch.equal(again.gains, found.gains)


@pytest.mark.parametrize("count", [0, 1, FEWEST - 1])
def test_too_few_examples_leave_the_usual_gain(count: int) -> None:
    """All encoders together have it."""
    found = fit_trust([EQUAL, RANDOM], diagonal(count))
    assert found.most.tolist() == [USUAL / 2, USUAL / 2]
    cosines = torch.tensor([-1.0, 0.0, 0.25, 0.5, 1.0])
    assert found.gain(1, cosines).tolist() == pytest.approx([0, 0, USUAL / 8, USUAL / 4, USUAL / 2])


class TestSameBits:
    def test_for_any_number_of_threads(self) -> None:
        contents = [Pair(EQUAL.source, noisy(EQUAL.target, 2.0, 9)), labels(0.5, 40, 400, 2)]
        before = torch.get_num_threads()
        try:
            found = []
            for threads in (1, 2):
                torch.set_num_threads(threads)
                found.append(fit_trust(contents, diagonal(300)))
        finally:
            torch.set_num_threads(before)
        assert torch.equal(found[0].gains, found[1].gains)
        assert torch.equal(found[0].knots, found[1].knots)

    def test_for_sums_in_another_order(self) -> None:
        """Dimensions in another order, as other threads add them."""
        contents = Pair(EQUAL.source, noisy(EQUAL.target, 2.0, 9))
        order = torch.randperm(64, generator=draw(0))
        found = fit_trust([contents], diagonal(300))
        other = fit_trust([contents.map(lambda rows: rows[:, order])], diagonal(300))
        assert torch.equal(found.gains, other.gains)
        assert torch.equal(found.knots, other.knots)


def test_a_sample_of_rivals_stands_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = labels(0.6, 50, 2000, 0)
    whole = fit_trust([contents], diagonal(600))
    monkeypatch.setattr(module, "MOST_COMPARED", 500)
    assert float(fit_trust([contents], diagonal(600)).most) == pytest.approx(
        float(whole.most), abs=0.3
    )


# -- examples ------------------------------------------------------------------------------------


ORDER = torch.randperm(500, generator=draw(4))  # target ORDER[i] is that of source i
STRUCTURE = Pair(random_rows(500, 3), torch.empty(500, 64))
STRUCTURE.target[ORDER] = noisy(STRUCTURE.source, 1.5, 4)


def every(count: int = 500) -> Pair[Tensor]:
    return Pair(torch.arange(count), torch.arange(count))


class TestSurestPairs:
    def test_they_are_right(self) -> None:
        found = surest_pairs([STRUCTURE], [1.0], every())
        assert 200 < len(found) < 300  # of mutual nearest ones, half: those with a clear lead
        assert torch.equal(found[:, 1], ORDER[found[:, 0]])

    def test_from_entities_that_are_free_alone(self) -> None:
        free = Pair(torch.arange(0, 500, 3), torch.arange(100, 500))
        found = surest_pairs([STRUCTURE], [1.0], free)
        assert len(found) > 20
        for ids, ends in free.zip(Pair(*found.T)):
            assert torch.isin(ends, ids).all()
            assert len(set(ends.tolist())) == len(ends)
        assert (found[:, 1] == ORDER[found[:, 0]]).float().mean() > 0.9

    def test_each_is_nearest_to_the_other(self) -> None:
        """A source without a counterpart is nearest to some target, but that one to another."""
        more = noisy(STRUCTURE.source[:200], 1.0, 6)
        wide = Pair(torch.cat([STRUCTURE.source, more]), STRUCTURE.target)
        found = surest_pairs([wide], [1.0], Pair(torch.arange(700), torch.arange(500)))
        assert len(found) > 100
        assert len(set(found[:, 1].tolist())) == len(found)
        nearest = (wide.target @ wide.source.T).argmax(1)
        assert torch.equal(nearest[found[:, 1]], found[:, 0])

    def test_not_from_entities_that_look_alike(self) -> None:
        target = STRUCTURE.target.clone()
        target[ORDER[:50]] = target[ORDER[50:100]]  # each of these has a double
        found = surest_pairs([Pair(STRUCTURE.source, target)], [1.0], every())
        assert len(found) > 100
        assert not (found[:, 0] < 100).any()

    def test_all_encoders_are_asked(self) -> None:
        noise = Pair(random_rows(500, 8, 20), random_rows(500, 9, 20))
        alone = surest_pairs([noise], [1.0], every())
        assert (alone[:, 1] == ORDER[alone[:, 0]]).float().mean() < 0.1
        found = surest_pairs([noise, STRUCTURE], [0.2, 0.8], every())
        assert (found[:, 1] == ORDER[found[:, 0]]).all()
        assert torch.equal(
            surest_pairs([noise, STRUCTURE], [0.0, 1.0], every()),
            surest_pairs([STRUCTURE], [1.0], every()),
        )

    def test_in_half_precision(self) -> None:
        half = STRUCTURE.map(Tensor.half)
        found = surest_pairs([half, half], [0.3, 0.7], every())
        exact = half.map(Tensor.float)
        assert torch.equal(found, surest_pairs([exact, exact], [0.3, 0.7], every()))

    def test_blocks_change_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = surest_pairs([STRUCTURE], [1.0], every())
        for rows in (1, 7, 499):
            monkeypatch.setattr(module, "ROWS_AT_ONCE", rows)
            assert torch.equal(surest_pairs([STRUCTURE], [1.0], every()), whole)

    def test_only_some_are_looked_at(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "LOOKED_AT", 80)
        assert 20 < len(surest_pairs([STRUCTURE], [1.0], every())) <= 41
        monkeypatch.setattr(module, "MOST_COSINES", 20 * 500)
        assert len(surest_pairs([STRUCTURE], [1.0], every())) <= 11

    def test_there_are_never_too_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert MOST_EXAMPLES == 1000
        monkeypatch.setattr(module, "MOST_EXAMPLES", 30)
        assert len(surest_pairs([STRUCTURE], [1.0], every())) == 30

    def test_none_without_structure_or_entities(self) -> None:
        assert surest_pairs([], [], every()).shape == (0, 2)
        nobody = torch.empty(0, dtype=torch.int64)
        for free in (Pair(nobody, torch.arange(3)), Pair(torch.arange(3), nobody)):
            assert surest_pairs([STRUCTURE], [1.0], free).shape == (0, 2)

    def test_vectors_that_are_all_alike_are_no_evidence(self) -> None:
        alike = Pair(torch.ones(30, 4) / 2, torch.ones(30, 4) / 2)
        assert surest_pairs([alike], [1.0], every(30)).shape == (0, 2)
