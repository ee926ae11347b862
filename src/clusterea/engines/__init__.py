"""Engines: where the units of a run are computed."""

from clusterea.engines.engine import Engine, OnResult, Ref
from clusterea.engines.in_memory import InMemory
from clusterea.engines.opened import ENGINES, check_engine, open_engine

__all__ = ["ENGINES", "Engine", "InMemory", "OnResult", "Ref", "check_engine", "open_engine"]
