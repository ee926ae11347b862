from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from clusterea.report.calibration import histogram, reliability
from clusterea.report.data import RIGHT, UNKNOWN, WRONG


def test_the_bins_hold_every_link_once() -> None:
    confidence = np.array([0.0, 0.04, 0.5, 0.55, 1.0])
    correctness = np.array([RIGHT, WRONG, UNKNOWN, RIGHT, WRONG], dtype=np.int8)
    bins = histogram(confidence, correctness, bins=2)
    assert [(each.least, each.most) for each in bins] == [(0.0, 0.5), (0.5, 1.0)]
    assert [(each.links, each.right, each.wrong, each.unknown) for each in bins] == [
        (2, 1, 1, 0),
        (3, 1, 1, 1),
    ]


def test_without_test_links_all_are_unknown() -> None:
    bins = histogram(np.array([0.1, 0.9]), None)
    assert sum(each.unknown for each in bins) == 2


def test_links_that_are_right_as_often_as_they_are_sure_lie_on_the_diagonal() -> None:
    rng = np.random.default_rng(0)
    confidence = rng.random(20_000)
    correctness = np.where(rng.random(20_000) < confidence, RIGHT, WRONG).astype(np.int8)
    points = reliability(confidence, correctness)
    assert len(points) == 10
    assert all(1_990 <= point.links <= 2_010 for point in points)
    assert all(abs(point.precision - point.confidence) < 0.04 for point in points)


def test_the_interval_is_wilsons() -> None:
    correctness = np.array([RIGHT] * 7 + [WRONG] * 3, dtype=np.int8)
    (point,) = reliability(np.full(10, 0.5), correctness)
    oracle = binomtest(7, 10).proportion_ci(method="wilson")
    assert (point.links, point.precision) == (10, 0.7)
    assert (point.low, point.high) == pytest.approx((oracle.low, oracle.high), abs=1e-4)


def test_links_of_one_confidence_stay_together_and_unknown_ones_out() -> None:
    confidence = np.array([1.0] * 50 + [0.2] * 3 + [0.9] * 40)
    correctness = np.array([RIGHT] * 50 + [WRONG] * 3 + [UNKNOWN] * 40, dtype=np.int8)
    points = reliability(confidence, correctness)
    assert [(point.confidence, point.precision) for point in points] == [
        pytest.approx((0.2, 0.0)),
        (1.0, 1.0),
    ]
    assert reliability(confidence[-40:], correctness[-40:]) == ()
