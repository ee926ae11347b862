"""SparseFusion: similarities from mini-batches and from all entities, in one sparse matrix."""

from clusterea.fusion.fuse import fuse

__all__ = ["fuse"]
