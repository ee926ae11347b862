from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from small_similarities import calibration_error
from torch import Tensor

from clusterea.matching.calibration import (
    FEWEST,
    HeldOut,
    abstain_below,
    calibrate,
    calibrate_held_out,
    held_out,
    num_matchable,
)
from clusterea.types import Pair


def drawn(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def logistic(count: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Features, the chance that they give by a known relation, and who is right by that chance."""
    features = torch.randn(count, 3, generator=drawn(seed)) * torch.tensor([1.0, 5.0, 0.1]) + 2
    logits = (features - 2) @ torch.tensor([2.0, -0.3, 0.0]) + 0.5
    chance = logits.sigmoid()
    return features, chance, torch.rand(count, generator=drawn(seed + 1)) < chance


def test_a_known_relation_is_found_again() -> None:
    features, chance, is_right = logistic(20_000, seed=0)
    calibration = calibrate(features, is_right)
    slopes = calibration.coefficients / calibration.scales
    assert slopes.tolist() == pytest.approx([2, -0.3, 0], abs=0.3)
    assert float((calibration.confidence(features) - chance).abs().mean()) < 0.01


@pytest.mark.parametrize(("examples", "most"), [(100, 0.08), (500, 0.05), (5000, 0.02)])
def test_confidence_holds_for_links_not_seen(examples: int, most: float) -> None:
    features, _, is_right = logistic(examples, seed=2)
    others, _, others_right = logistic(20_000, seed=4)
    confidence = calibrate(features, is_right).confidence(others)
    assert confidence.dtype == torch.float32
    assert calibration_error(confidence, others_right) < most


def test_an_example_of_weight_two_is_two() -> None:
    features, _, is_right = logistic(200, seed=6)
    doubled = calibrate(torch.cat([features, features[:50]]), torch.cat([is_right, is_right[:50]]))
    weights = torch.ones(200)
    weights[:50] = 2
    weighted = calibrate(features, is_right, weights)
    # Means and scales are of the examples as they are, so the ridge weighs a little differently.
    torch.testing.assert_close(
        weighted.confidence(features), doubled.confidence(features), atol=2e-3, rtol=0
    )


def test_separable_examples_stay_unsure() -> None:
    features = torch.linspace(-1, 1, 200).unsqueeze(1)
    confidence = calibrate(features, features[:, 0] > 0).confidence(1000 * features)
    assert confidence.isfinite().all()
    inside = calibrate(features, features[:, 0] > 0).confidence(features)
    assert 0 < float(inside.min()) < 0.05
    assert 0.95 < float(inside.max()) < 1
    assert (inside.diff() > 0).all()


@pytest.mark.parametrize("count", [FEWEST, 100])
@pytest.mark.parametrize("verdict", [True, False])
def test_one_class_makes_all_links_as_likely(count: int, verdict: bool) -> None:
    features = torch.randn(count, 4, generator=drawn(0))
    calibration = calibrate(features, torch.full((count,), verdict))
    share = (count + 1) / (count + 2) if verdict else 1 / (count + 2)
    elsewhere = torch.randn(50, 4, generator=drawn(1))
    assert calibration.confidence(elsewhere).tolist() == pytest.approx([share] * 50, abs=1e-4)


@pytest.mark.parametrize(("right", "wrong"), [(0, 0), (1, 0), (0, 3), (9, 4)])
def test_few_examples_give_one_confidence(right: int, wrong: int) -> None:
    features = torch.randn(right + wrong, 2, generator=drawn(0))
    calibration = calibrate(features, torch.arange(right + wrong) < right)
    share = (right + 1) / (right + wrong + 2)
    assert calibration.confidence(torch.randn(7, 2)).tolist() == pytest.approx([share] * 7)


def test_a_constant_feature_has_no_part() -> None:
    features, _, is_right = logistic(300, seed=10)
    constant = torch.full((300, 1), 0.1)
    more = calibrate(torch.cat([features, constant], dim=1), is_right)
    assert float(more.coefficients[-1]) == pytest.approx(0, abs=1e-9)
    torch.testing.assert_close(
        more.confidence(torch.cat([features, constant], dim=1)),
        calibrate(features, is_right).confidence(features),
    )


def test_held_out_pairs_judge_what_touches_them() -> None:
    links = torch.tensor([[0, 0], [1, 2], [3, 1], [4, 4], [5, 7]])
    known = held_out(links, torch.tensor([[0, 0], [1, 1], [6, 6]]))
    assert known.links.tolist() == [0, 1, 2]
    assert known.is_right.tolist() == [True, False, False]
    assert known.found.tolist() == [0]
    assert known.num_pairs == 3


def test_no_links_and_no_pairs_say_nothing() -> None:
    nothing = torch.empty(0, 2, dtype=torch.int64)
    assert held_out(nothing, nothing).links.tolist() == []
    assert held_out(nothing, torch.tensor([[1, 1]])).num_pairs == 1
    assert held_out(torch.tensor([[1, 1]]), nothing).found.tolist() == []


class World:
    """Links of a made-up alignment: some entities have counterparts, some of them are held out.

    Source i and target i are a pair for i < `matchable`, and the others have none. A link of a
    pair is right by a chance that one feature tells; the wrong ones exchange their targets among
    each other, and with entities that have none.
    """

    def __init__(self, matchable: int, others: int, held: int, ease: float, seed: int = 0) -> None:
        size = matchable + others
        draw = drawn(seed)
        clarity = torch.randn(size, generator=draw)
        is_right = torch.rand(size, generator=draw) < (2 * clarity + ease).sigmoid()
        is_right[matchable:] = False
        wrong = (~is_right).nonzero().flatten()
        targets = torch.arange(size)
        targets[wrong] = wrong[torch.randperm(len(wrong), generator=draw)]
        self.links = torch.stack([torch.arange(size), targets], dim=1)
        self.is_right = (targets == torch.arange(size)) & (targets < matchable)
        clarity[matchable:] -= 1.5  # links of entities without counterparts look worse
        self.features = clarity.unsqueeze(1)
        self.size, self.matchable = size, matchable
        pairs = torch.randperm(matchable, generator=draw)[:held]
        self.known = held_out(self.links, torch.stack([pairs, pairs], dim=1))
        self.calibration = calibrate_held_out(self.features, self.known, Pair(size, size))
        self.confidence = self.calibration.confidence(self.features)

    def f1(self, threshold: float) -> float:
        given = self.confidence >= threshold
        right = float(self.is_right[given].sum())
        return 2 * right / (float(given.sum()) + self.matchable)

    def best_f1(self) -> float:
        order = self.confidence.argsort(descending=True)
        right = self.is_right[order].cumsum(0)
        return float((2 * right / (torch.arange(1, self.size + 1) + self.matchable)).max())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("others", [0, 10_000, 40_000])
def test_confidence_is_right_for_entities_with_counterparts(others: int, seed: int) -> None:
    world = World(10_000, others, held=1000, ease=1.0, seed=seed)
    judged = (world.links < world.matchable).any(1)
    assert calibration_error(world.confidence[judged], world.is_right[judged]) < 0.05


def test_wrong_links_with_two_chances_to_be_seen_count_half() -> None:
    world = World(10_000, 0, held=1000, ease=1.0)
    naive = calibrate(world.features[world.known.links], world.known.is_right)
    assert calibration_error(naive.confidence(world.features), world.is_right) > 0.05
    assert calibration_error(world.confidence, world.is_right) < 0.03


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("others", [0, 5_000, 20_000])
@pytest.mark.parametrize("ease", [0.0, 2.0])
def test_the_threshold_is_nearly_the_best(ease: float, others: int, seed: int) -> None:
    world = World(10_000, others, held=400, ease=ease, seed=seed)
    threshold = abstain_below(world.confidence, world.known, world.size)
    assert world.f1(threshold) > world.best_f1() - 0.02


@pytest.mark.parametrize("seed", range(3))
def test_where_everybody_has_a_counterpart_nearly_all_links_are_given(seed: int) -> None:
    world = World(10_000, 0, held=400, ease=6.0, seed=seed)
    threshold = abstain_below(world.confidence, world.known, world.size)
    assert float((world.confidence >= threshold).float().mean()) > 0.97


@pytest.mark.parametrize("seed", range(3))
def test_the_number_of_counterparts_is_bounded_from_above(seed: int) -> None:
    for others in (0, 20_000):
        world = World(10_000, others, held=1000, ease=3.0, seed=seed)
        found = num_matchable(world.confidence, world.known, world.size)
        assert 0.95 * world.matchable < found < 1.3 * world.matchable


def test_where_nothing_is_found_every_link_is_given() -> None:
    confidence = torch.rand(500, generator=drawn(0))
    known = HeldOut(torch.arange(40), torch.zeros(40, dtype=torch.bool), 100)
    assert abstain_below(confidence, known, 500) == 0
    assert num_matchable(confidence, known, 500) == 500


@pytest.mark.parametrize("others", [0, 20_000])
def test_one_example_more_or_less_moves_the_cut_a_little(others: int) -> None:
    world = World(10_000, others, held=55, ease=0.0)
    given = []
    for kept in range(10, 55):
        fewer = HeldOut(world.known.links[:kept], world.known.is_right[:kept], kept)
        threshold = abstain_below(world.confidence, fewer, world.size)
        given.append(int((world.confidence >= threshold).sum()))
    steps = [abs(one - other) / one for one, other in pairwise(given)]
    assert max(steps) < 0.2
    assert max(given) < 0.8 * world.size


def test_expected_coefficients_hold_until_examples_speak_against_them() -> None:
    others, chance, _ = logistic(5000, seed=40)

    def error(examples: int, expected: list[float] | None, seed: int) -> float:
        features, _, is_right = logistic(examples, seed)
        fitted = calibrate(features, is_right, among=others, expected=expected)
        return float((fitted.confidence(others) - chance).abs().mean())

    expected = [2.0, -0.3, 0.0]
    for seed in range(50, 60, 2):
        assert error(30, expected, seed) < error(30, None, seed)
        assert error(20_000, [0.0, 2.0, 1.0], seed) < 0.02


def test_equal_confidences_are_given_or_left_together() -> None:
    known = HeldOut(torch.arange(100), torch.ones(100, dtype=torch.bool), 100)
    assert abstain_below(torch.full((1000,), 0.7), known, 1000) == 0
    # A thousand sure links, as all held-out pairs are, and many that are not.
    confidence = torch.cat([torch.full((1000,), 0.99), torch.full((9000,), 0.01)])
    assert abstain_below(confidence, known, 9000) == pytest.approx(0.99)


def test_the_order_of_links_changes_nothing() -> None:
    world = World(2000, 2000, held=300, ease=2.0)
    order = torch.randperm(world.size, generator=drawn(5))
    moved = torch.empty_like(order)
    moved[order] = torch.arange(world.size)
    known = HeldOut(moved[world.known.links], world.known.is_right, world.known.num_pairs)
    again = calibrate_held_out(world.features[order], known, Pair(world.size, world.size))
    confidence = again.confidence(world.features[order])
    torch.testing.assert_close(confidence, world.confidence[order])
    assert abstain_below(confidence, known, world.size) == pytest.approx(
        abstain_below(world.confidence, world.known, world.size), abs=1e-4
    )


def test_without_held_out_pairs_nothing_is_known() -> None:
    links = torch.tensor([[0, 1], [1, 0]])
    known = held_out(links, torch.empty(0, 2, dtype=torch.int64))
    for features in (torch.rand(2, 3), torch.rand(2, 3)[:0]):
        confidence = calibrate_held_out(features, known, Pair(2, 2)).confidence(features)
        assert confidence.tolist() == [0.5] * len(features)
        assert abstain_below(confidence, known, 2) == 0
