"""Numbers for people to read. `script.js` has the same rules for `measured` and `count`."""

from __future__ import annotations

from clusterea.files import readable_size
from clusterea.types import Measure
from clusterea.types.rounding import rounded


def percent(share: float) -> str:
    """`93.1%`. Only 1 is shown as `100.0%`, and only 0 as `0.0%`.

    Near 0 and 1 there is one more digit (`99.97%`), and beyond that a bound (`>99.99%`).
    """
    return rounded(share, 1, most=100) + "%"


def measured(value: float, measure: Measure) -> str:
    """A confidence as in `percent`; a score as `0.931`, since it is not a probability."""
    return percent(value) if measure == "confidence" else rounded(value, 3)


def confidence(value: float | None) -> str:
    """`0.87`; near 0 and 1 as in `percent`; a dash for None."""
    return "–" if value is None else rounded(value, 2)


def mean_reciprocal_rank(value: float) -> str:
    """`0.795`; near 0 and 1 as in `percent`."""
    return rounded(value, 3)


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
    """`512 MiB`, `1.5 GiB`; a dash for None."""
    return "–" if num_bytes is None else readable_size(num_bytes)


def count(number: int) -> str:
    """`1,234,567`."""
    return f"{number:,}"


def degrees(least: int, most: int) -> str:
    """`2`, `3–4`."""
    return f"{least}" if least == most else f"{least:,}–{most:,}"
