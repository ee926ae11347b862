"""Sizes as people write them."""

from __future__ import annotations

import pytest

from clusterea.errors import InputError
from clusterea.sizes import parse_size


class TestParseSize:
    @pytest.mark.parametrize(
        ("text", "size"),
        [
            ("1", 1),
            ("500", 500),
            ("500b", 500),
            ("500 B", 500),
            ("2k", 2_000),
            ("2kB", 2_000),
            ("2KB", 2_000),
            ("2KiB", 2_048),
            ("2Ki", 2_048),
            ("500MB", 500_000_000),
            ("3M", 3_000_000),
            ("3mib", 3 << 20),
            ("8g", 8_000_000_000),
            ("8G", 8_000_000_000),
            ("20GiB", 20 << 30),
            ("20 GiB", 20 << 30),
            (" 20gib\n", 20 << 30),
            ("1.5GiB", 3 << 29),
            ("0.5g", 500_000_000),
            ("1t", 10**12),
            ("2TiB", 2 << 40),
        ],
    )
    def test_good(self, text: str, size: int) -> None:
        assert parse_size(text) == size

    @pytest.mark.parametrize(
        "text",
        [
            *("", " ", "GiB", "-1g", "+1g", "1e9", ".5g", "5.g", "1,5g", "1_000", "20 gigs", "8gg"),
            *("8gbi", "8ib", "20GiB 4", "20 Gi B", "half", "0x10", "nan", "inf", "8p"),
        ],
    )
    def test_bad(self, text: str) -> None:
        with pytest.raises(InputError, match=r"--memory must be a size, as 20GiB\. Got '"):
            parse_size(text)

    @pytest.mark.parametrize("text", ["0", "0GiB", "0.0 k", "0.4"])
    def test_nothing(self, text: str) -> None:
        with pytest.raises(InputError, match=r"--memory must be more than 0\. Got '"):
            parse_size(text)
