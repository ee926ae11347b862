"""Finds which entities of two knowledge graphs are the same, from structure, seeds and names."""

from __future__ import annotations

from clusterea.threads import set_thread_defaults
from clusterea.version import __version__

TYPE_CHECKING = False  # instead of importing `typing`, which is slow
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

set_thread_defaults()  # before anything loads torch

# These names are imported when they are first used, so that the command line starts fast.
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
