"""The stages one after the other, each with its artifact; holds no algorithm."""

from clusterea.pipeline.align import Observer, align
from clusterea.pipeline.artifacts import Artifacts
from clusterea.pipeline.cuts import Cuts
from clusterea.pipeline.device import choose_device
from clusterea.pipeline.encoding import Known
from clusterea.pipeline.measure import StageCost, measured
from clusterea.pipeline.result import AlignmentResult
from clusterea.pipeline.stages import (
    fuse_stage,
    give_stage,
    match_stage,
    point_at_encoders,
    sample_stage,
    train_stage,
)

__all__ = [
    "AlignmentResult",
    "Artifacts",
    "Cuts",
    "Known",
    "Observer",
    "StageCost",
    "align",
    "choose_device",
    "fuse_stage",
    "give_stage",
    "match_stage",
    "measured",
    "point_at_encoders",
    "sample_stage",
    "train_stage",
]
