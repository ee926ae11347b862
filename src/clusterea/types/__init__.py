"""The values that stages take and return. They are immutable and checked on construction."""

from clusterea.types.alignment import Alignment, Measure
from clusterea.types.arrays import IntArray
from clusterea.types.benchmark import Benchmark
from clusterea.types.cost import StageCost
from clusterea.types.graph import KnowledgeGraph
from clusterea.types.metrics import DegreeBucket, MatchingScores, Metrics, Ranking
from clusterea.types.names import Names
from clusterea.types.pair import Pair
from clusterea.types.partition import Partition
from clusterea.types.similarity import Similarity
from clusterea.types.stored import Embeddings, Links, Stored
from clusterea.types.task import NO_ENTITIES, AlignmentTask

__all__ = [
    "NO_ENTITIES",
    "Alignment",
    "AlignmentTask",
    "Benchmark",
    "DegreeBucket",
    "Embeddings",
    "IntArray",
    "KnowledgeGraph",
    "Links",
    "MatchingScores",
    "Measure",
    "Metrics",
    "Names",
    "Pair",
    "Partition",
    "Ranking",
    "Similarity",
    "StageCost",
    "Stored",
]
