"""Encoders, one a file, behind one contract (`encoder.py`). A new one adds a line to `ENCODERS`."""

from __future__ import annotations

from collections.abc import Callable

import torch

from clusterea.config import TrainingConfig
from clusterea.errors import look_up
from clusterea.models.dual_amn import DualAMN
from clusterea.models.encoder import Encoder, Shape
from clusterea.models.gcn_align import GCNAlign
from clusterea.models.rrea import RREA

__all__ = ["ENCODERS", "Encoder", "Shape", "find_encoder"]

MakeEncoder = Callable[[Shape, TrainingConfig, torch.Generator], Encoder]
ENCODERS: dict[str, MakeEncoder] = {
    "gcn-align": GCNAlign,
    "rrea": RREA,
    "dual-amn": DualAMN,
}


def find_encoder(name: str) -> MakeEncoder:
    """The encoder called `name`; an unknown name is answered with the known ones."""
    return look_up("model", name, ENCODERS)
