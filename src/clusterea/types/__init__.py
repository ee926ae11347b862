"""The values that stages take and return. They are immutable and checked on construction."""

from clusterea.types.alignment import Alignment, Measure
from clusterea.types.arrays import IntArray
from clusterea.types.benchmark import Benchmark
from clusterea.types.cost import StageCost
from clusterea.types.decisions import Answer, Decisions, Question, Verdict
from clusterea.types.graph import KnowledgeGraph
from clusterea.types.links import NO_LINKS
from clusterea.types.metrics import DegreeBucket, MatchingScores, Metrics, Ranking
from clusterea.types.names import Names
from clusterea.types.pair import Pair
from clusterea.types.partition import Partition
from clusterea.types.similarity import Similarity
from clusterea.types.stored import Embeddings, Links, Stored
from clusterea.types.task import NO_ENTITIES, AlignmentTask
from clusterea.types.texts import Texts

__all__ = [
    "NO_ENTITIES",
    "NO_LINKS",
    "Alignment",
    "AlignmentTask",
    "Answer",
    "Benchmark",
    "Decisions",
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
    "Question",
    "Ranking",
    "Similarity",
    "StageCost",
    "Stored",
    "Texts",
    "Verdict",
]
