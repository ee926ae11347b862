"""Sizes in bytes, such as `20GiB`."""

from __future__ import annotations

import re

from clusterea.errors import InputError

UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
UNITS |= {"ki": 1024, "mi": 1024**2, "gi": 1024**3, "ti": 1024**4}


def parse_size(text: str, option: str = "--memory") -> int:
    """Bytes from `20GiB`, `8g`, `500MB` and the like; `option` is for the error message."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?\s*", text.lower())
    if not found:
        raise InputError(f"{option} must be a size, as 20GiB. Got {text!r} instead.")
    size = int(float(found[1]) * UNITS[found[2] or ""])
    if not size:
        raise InputError(f"{option} must be more than 0. Got {text!r} instead.")
    return size
