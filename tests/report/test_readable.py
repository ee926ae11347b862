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
    [(None, "–"), (0, "0 MiB"), (512 * 2**20, "512 MiB"), (1536 * 2**20, "1.5 GiB")],
)
def test_sizes(num_bytes: int | None, shown: str) -> None:
    assert readable.size(num_bytes) == shown


def test_shares_counts_and_degrees() -> None:
    assert readable.percent(0.9314) == "93.1%"
    assert readable.count(1234567) == "1,234,567"
    assert (readable.degrees(2, 2), readable.degrees(17, 1200)) == ("2", "17–1,200")
