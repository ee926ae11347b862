"""Numbers as a person reads them."""

from __future__ import annotations


def percent(share: float) -> str:
    """`93.1%`."""
    return f"{share:.1%}"


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
