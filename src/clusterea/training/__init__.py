"""Stage 1: from a task to an embedding of every entity."""

from clusterea.training.label_propagation import propagate
from clusterea.training.progress import EncoderProgress
from clusterea.training.train import Checkpoints, train

__all__ = ["Checkpoints", "EncoderProgress", "propagate", "train"]
