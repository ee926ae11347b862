"""Which entities of two knowledge graphs are the same, from structure and a few known pairs."""

from __future__ import annotations

from clusterea.version import __version__

TYPE_CHECKING = False  # as `typing` has it, which takes long to import
if TYPE_CHECKING:
    from typing import Any

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

# Names that live elsewhere are imported when they are first used: the command line answers at
# once, and can be stopped while it starts.
_HOMES = {
    "AlignmentResult": "clusterea.pipeline",
    "align": "clusterea.library",
    "fuse": "clusterea.library",
    "load": "clusterea.library",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES.get(name, "clusterea.types")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
