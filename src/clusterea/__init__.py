"""Which entities of two knowledge graphs are the same, from structure and a few known pairs."""

from clusterea.library import align, fuse, load
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
from clusterea.version import __version__

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
    "__version__",
    "align",
    "fuse",
    "load",
]
