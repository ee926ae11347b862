"""Encoders, one a file, behind one contract (`encoder.py`). A new one adds a line to `ENCODERS`."""

from __future__ import annotations

from collections.abc import Callable

import torch

from clusterea.config import LABEL_PROPAGATION, TrainingConfig
from clusterea.errors import look_up
from clusterea.models.dual_amn import DualAMN
from clusterea.models.encoder import Encoder, Shape
from clusterea.models.gcn_align import GCNAlign
from clusterea.models.rrea import RREA

__all__ = ["ENCODERS", "Encoder", "Shape", "check_model", "find_encoder"]

MakeEncoder = Callable[[Shape, TrainingConfig, torch.Generator], Encoder]
ENCODERS: dict[str, MakeEncoder] = {
    "gcn-align": GCNAlign,
    "rrea": RREA,
    "dual-amn": DualAMN,
}


def check_model(name: str) -> None:
    """Raises unless an encoder is called so, trained or not."""
    if name != LABEL_PROPAGATION:
        look_up("model", name, {**ENCODERS, LABEL_PROPAGATION: None})


def find_encoder(name: str) -> MakeEncoder:
    """The encoder called `name`; an unknown name is answered with the known ones."""
    return look_up("model", name, ENCODERS)
