"""Which entities of two knowledge graphs are the same, from structure and a few known pairs."""

from clusterea.data import load
from clusterea.library import align, fuse
from clusterea.pipeline import AlignmentResult
from clusterea.types import (
    Alignment,
    AlignmentTask,
    Benchmark,
    KnowledgeGraph,
    Metrics,
    Pair,
    Partition,
    Similarity,
)

__version__ = "0.1.0"

__all__ = [
    "Alignment",
    "AlignmentResult",
    "AlignmentTask",
    "Benchmark",
    "KnowledgeGraph",
    "Metrics",
    "Pair",
    "Partition",
    "Similarity",
    "align",
    "fuse",
    "load",
]
