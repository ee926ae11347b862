"""Stages whose work is cut into shards: which unit runs on which part. An engine runs them."""

from clusterea.sharded.fuse import fuse
from clusterea.sharded.propagation import propagate

__all__ = ["fuse", "propagate"]
