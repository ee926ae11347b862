"""`Progress`: how far an encoder is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """Where training stands after a step."""

    epoch: int  # from 1
    epochs: int
    step: int  # of the epoch, from 1
    steps: int
    loss: float | None  # mean of the epoch so far; None between two looks at the device
    rows_touched: int  # rows of the entity table that the step read and changed
