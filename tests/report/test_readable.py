from __future__ import annotations

import pytest

from clusterea.report import readable


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.04, "0.0 s"),
        (12.34, "12.3 s"),
        (59.96, "1 min 00 s"),
        (185.4, "3 min 05 s"),
        (3599.7, "1 h 00 min"),
        (7380, "2 h 03 min"),
    ],
)
def test_durations(seconds: float, shown: str) -> None:
    assert readable.duration(seconds) == shown


@pytest.mark.parametrize(
    ("num_bytes", "shown"),
    [(None, "–"), (1010, "1010 B"), (512 * 2**20, "512 MiB"), (1536 * 2**20, "1.5 GiB")],
)
def test_sizes(num_bytes: int | None, shown: str) -> None:
    assert readable.size(num_bytes) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (1, "100.0%"),
        (0.99996, ">99.99%"),
        (0.9997, "99.97%"),
        (0.9995, "99.95%"),
        (0.9994, "99.9%"),
        (0.5, "50.0%"),
        (0.0005, "0.1%"),
        (0.0003, "0.03%"),
        (0.00001, "<0.01%"),
        (0, "0.0%"),
    ],
)
def test_only_all_is_a_hundred_percent_and_only_nothing_is_zero(share: float, shown: str) -> None:
    assert readable.percent(share) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1, "1.000"), (0.99999, ">0.9999"), (0.9997, "0.9997"), (0.7951, "0.795"), (0.0002, "0.0002")],
)
def test_a_mean_reciprocal_rank_is_not_rounded_to_one(value: float, shown: str) -> None:
    assert readable.mean_reciprocal_rank(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.5, "0.50"), (0.9997, ">0.999"), (0.997, "0.997"), (1.0, "1.00"), (None, "–")],
)
def test_a_confidence_is_not_rounded_to_one(value: float | None, shown: str) -> None:
    assert readable.confidence(value) == shown


def test_shares_counts_and_degrees() -> None:
    assert readable.percent(0.9314) == "93.1%"
    assert readable.count(1234567) == "1,234,567"
    assert (readable.degrees(2, 2), readable.degrees(17, 1200)) == ("2", "17–1,200")


@pytest.mark.parametrize(
    ("seeds_from", "shown"),
    [
        ({}, ""),
        ({"links": 9}, ""),
        ({"links": 9, "iris": 0, "names": 0}, ""),
        ({"links": 1300, "iris": 6}, " (1,300 from links, 6 from identical IRIs)"),
        ({"names": 9553}, " (9,553 from equal names)"),
        ({"names": 3, "links": 0, "iris": 2}, " (2 from identical IRIs, 3 from equal names)"),
    ],
)
def test_seeds_that_do_not_come_from_links_are_told(seeds_from: dict[str, int], shown: str) -> None:
    assert readable.seeds_origin(seeds_from) == shown


def test_lists_and_labels() -> None:
    assert readable.listed(["a"]) == "a"
    assert readable.listed(["a", "b", "c"]) == "a, b and c"
    assert readable.one_line(" a\t\r\n\u2028b\x1b[31m\x9b ") == "a b [31m"
    assert readable.labeled("Q90", "Paris\n") == "Paris (Q90)"
    assert readable.labeled("Paris", "Paris") == readable.labeled("Paris", None) == "Paris"
    assert readable.labeled("Q90", " \n") == "Q90"
    assert readable.labeled("Q90", "é" * 200) == "é" * 200 + " (Q90)"
    assert readable.labeled("Q90", "é" * 10_000_000) == "é" * 199 + "… (Q90)"
