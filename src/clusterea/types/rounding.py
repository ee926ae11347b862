"""`rounded`: shares and confidences for people to read."""

from __future__ import annotations

from math import floor


def rounded(share: float, decimals: int, most: int = 1) -> str:
    """`share` times `most` as text. Only 0 and 1 are shown as 0 and `most`.

    Near 0 and 1 there is one more digit (`0.9997`), and beyond that a bound (`>0.9999`).
    """
    for places in (decimals, decimals + 1):
        steps = most * 10**places
        # Halves round up, and JavaScript gives the same digits.
        nearest = floor(share * steps + 0.5)
        if not 0 < share < 1 or 0 < nearest < steps:
            return f"{nearest / 10**places:.{places}f}"
    bound = 1 if nearest <= 0 else steps - 1
    return f"{'<' if nearest <= 0 else '>'}{bound / 10**places:.{places}f}"
