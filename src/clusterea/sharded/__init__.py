"""Stages whose work is cut into shards: which unit runs on which part. An engine runs them."""

from clusterea.sharded.fuse import fuse
from clusterea.sharded.match import match
from clusterea.sharded.names import encode_names
from clusterea.sharded.open_cells import ShardedCells
from clusterea.sharded.propagation import propagate
from clusterea.sharded.scores import HeldScores

__all__ = ["HeldScores", "ShardedCells", "encode_names", "fuse", "match", "propagate"]
