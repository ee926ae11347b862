"""Numbers and words for people to read.

`script.js` has the same rules for `measured` and `count`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

import pyarrow.compute as pc

from clusterea.errors import cut
from clusterea.files import readable_size
from clusterea.types import Measure, Names
from clusterea.types.rounding import rounded

_BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")  # line ends, and what moves a terminal's cursor
SEED_ORIGINS = {
    "links": "from links",
    "iris": "from identical IRIs",
    "names": "from equal names",
    "answers": "from answers",
}


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


def one_line(text: str) -> str:
    """The text with a single space in place of line ends, control characters and other spaces.

    It is cut to 200 characters.
    """
    return cut(_BREAKS.sub(" ", text).strip())


def listed(words: Sequence[str]) -> str:
    """`structure`, `structure and names`, `structure, names and features`."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def seeds_origin(seeds_from: Mapping[str, int]) -> str:
    """Where the seeds come from, as ` (9 from links, 4 from equal names)`.

    Empty if all come from links.
    """
    found = {origin: number for origin, number in seeds_from.items() if number}
    if not found.keys() - {"links"}:
        return ""
    known = [origin for origin in SEED_ORIGINS if origin in found]
    return f" ({', '.join(f'{found[each]:,} {SEED_ORIGINS[each]}' for each in known)})"


def labeled(name: str, label: str | None) -> str:
    """`Label (name)`, or only the name if there is no label, or if it is the same."""
    text = one_line(label or "")
    return f"{text} ({name})" if text and text != name else name


def shortened(names: Names) -> Callable[[str], str]:
    """A function that removes the common prefix of names, as `http://dbpedia.org/resource/`."""
    # A prefix of the first and the last name is a prefix of all.
    ends = pc.min_max(names.arrow).as_py()
    same = takewhile(
        lambda two: two[0] == two[1], zip(ends["min"] or "", ends["max"] or "", strict=False)
    )
    shared = "".join(character for character, _ in same)
    cut_at = max(shared.rfind(mark) for mark in "/#") + 1
    return lambda name: name[cut_at:] or name
