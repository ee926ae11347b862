"""Stage 1: from a task to an embedding of every entity."""

from clusterea.training.progress import EncoderProgress
from clusterea.training.train import Checkpoints, train
from clusterea.training.translation import translate

__all__ = ["Checkpoints", "EncoderProgress", "train", "translate"]
