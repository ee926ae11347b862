"""Engines: where the units of a run are computed."""

from clusterea.engines.engine import Engine, OnResult, Ref
from clusterea.engines.in_memory import InMemory

__all__ = ["Engine", "InMemory", "OnResult", "Ref"]
