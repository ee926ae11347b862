"""Engines: where the units of a run are computed."""

from clusterea.engines.engine import SHARDS_PER_WORKER, Engine, OnResult, Ref
from clusterea.engines.in_memory import InMemory
from clusterea.engines.opened import ENGINES, check_engine, open_engine

__all__ = [
    "ENGINES",
    "SHARDS_PER_WORKER",
    "Engine",
    "InMemory",
    "OnResult",
    "Ref",
    "check_engine",
    "open_engine",
]
