"""Stages whose work is cut into shards: which unit runs on which part. An engine runs them."""

from clusterea.sharded.fuse import fuse
from clusterea.sharded.names import encode_names
from clusterea.sharded.propagation import propagate

__all__ = ["encode_names", "fuse", "propagate"]
