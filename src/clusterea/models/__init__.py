"""Encoders, one a file, behind one contract (`encoder.py`). A new one adds a line to `ENCODERS`."""

from __future__ import annotations

from collections.abc import Callable

import torch

from clusterea.config import TrainingConfig
from clusterea.models.dual_amn import DualAMN
from clusterea.models.encoder import Encoder, Shape
from clusterea.models.gcn_align import GCNAlign
from clusterea.models.rrea import RREA

__all__ = ["ENCODERS", "Encoder", "Shape"]

ENCODERS: dict[str, Callable[[Shape, TrainingConfig, torch.Generator], Encoder]] = {
    "gcn-align": GCNAlign,
    "rrea": RREA,
    "dual-amn": DualAMN,
}
