"""The stages one after the other, each with its artifact; holds no algorithm."""

from clusterea.pipeline.cuts import Cuts
from clusterea.pipeline.device import choose_device
from clusterea.pipeline.stages import load_embeddings, sample_stage, train_stage

__all__ = ["Cuts", "choose_device", "load_embeddings", "sample_stage", "train_stage"]
