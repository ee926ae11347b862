"""Encoders with one contract (`encoder.py`). A new one is a file and a line in `ENCODERS`."""

from __future__ import annotations

from clusterea.config import LABEL_PROPAGATION, NAMES, EncoderConfig, PropagationConfig
from clusterea.errors import look_up
from clusterea.models.dual_amn import DualAMN
from clusterea.models.encoder import Encoder, Shape, means_of_sets
from clusterea.models.gcn_align import GCNAlign
from clusterea.models.rrea import RREA

__all__ = [
    "ENCODERS",
    "Encoder",
    "Shape",
    "check_model",
    "find_encoder",
    "means_of_sets",
    "output_width",
]

ENCODERS: dict[str, type[Encoder]] = {
    "gcn-align": GCNAlign,
    "rrea": RREA,
    "dual-amn": DualAMN,
}


def check_model(name: str) -> None:
    """Raises unless `name` is a trained encoder, label propagation or names."""
    if name not in (LABEL_PROPAGATION, NAMES):
        look_up("model", name, {**ENCODERS, LABEL_PROPAGATION: None, NAMES: None})


def find_encoder(name: str) -> type[Encoder]:
    """The encoder called `name`. The error for an unknown name lists the known ones."""
    return look_up("model", name, ENCODERS)


def output_width(config: EncoderConfig) -> int:
    """The number of dimensions of an encoder's embeddings."""
    if isinstance(config, PropagationConfig):
        return config.features
    return config.dimension * find_encoder(config.model).outputs_per_dimension
