"""Stage 1: from a task to an embedding of every entity."""

from clusterea.training.train import Checkpoints, Progress, train

__all__ = ["Checkpoints", "Progress", "train"]
