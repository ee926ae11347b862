"""`EncoderProgress`: how far training or label propagation is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EncoderProgress:
    """The state after one step."""

    epoch: int  # from 1
    epochs: int
    step: int  # of the epoch, from 1
    steps: int
    loss: float | None  # mean of the epoch so far; None where it was not read from the device
    rows_touched: int  # rows of the entity table that the step updated
