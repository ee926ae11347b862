"""Numbers as a person reads them. `script.js` has `percent` and `count` too, by the same rules."""

from __future__ import annotations

from math import floor


def percent(share: float) -> str:
    """`93.1%`. What is not all is never `100.0%`, and what is not nothing never `0.0%`.

    Near the ends there is one more digit (`99.97%`), and beyond that a bound (`>99.99%`).
    """
    return _decimal(share, decimals=1, most=100) + "%"


def confidence(value: float | None) -> str:
    """`0.87`; near 0 and 1 as in `percent`; a dash where there is none."""
    return "–" if value is None else _decimal(value, decimals=2, most=1)


def mean_reciprocal_rank(value: float) -> str:
    """`0.795`; near 0 and 1 as in `percent`."""
    return _decimal(value, decimals=3, most=1)


def duration(seconds: float) -> str:
    """`0.4 s`, `12.3 s`, `3 min 05 s`, `1 h 02 min`."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def size(num_bytes: int | None) -> str:
    """`512 MiB`, `1.5 GiB`; a dash where nothing was measured."""
    if num_bytes is None:
        return "–"
    mebibytes = num_bytes / 2**20
    return f"{mebibytes:,.0f} MiB" if mebibytes < 1000 else f"{mebibytes / 1024:,.1f} GiB"


def count(number: int) -> str:
    """`1,234,567`."""
    return f"{number:,}"


def degrees(least: int, most: int) -> str:
    """`2`, `3–4`."""
    return f"{least}" if least == most else f"{least:,}–{most:,}"


def _decimal(share: float, decimals: int, most: int) -> str:
    """`share` of `most` in decimals, with one more where it would be rounded to 0 or to `most`."""
    for places in (decimals, decimals + 1):
        steps = most * 10**places
        # Halves go up, computed so that JavaScript's floats give the same digits.
        nearest = floor(share * steps + 0.5)
        if not 0 < share < 1 or 0 < nearest < steps:
            return f"{nearest / 10**places:.{places}f}"
    bound = 1 if nearest <= 0 else steps - 1
    return f"{'<' if nearest <= 0 else '>'}{bound / 10**places:.{places}f}"
