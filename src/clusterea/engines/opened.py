"""`open_engine`: the engine that a user asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from clusterea.engines.engine import Engine
from clusterea.engines.in_memory import InMemory
from clusterea.errors import InputError, unknown_name

ENGINES = ("local", "ray")
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):\d{1,5}")


def check_engine(kind: str, shards: int | None, address: str | None) -> None:
    """Raises if the options of an engine are wrong, or do not go together."""
    if kind not in ENGINES:
        raise unknown_name("engine", kind, ENGINES)
    if shards is not None and shards < 1:
        raise InputError(f"--shards must be an int in [1, inf). Got {shards} instead.")
    if address is not None and kind != "ray":
        raise InputError("--address is that of a Ray cluster: add --engine=ray.")
    if address is not None and not _ADDRESS.fullmatch(address):
        raise InputError(f"--address must be HOST:PORT, as 10.0.0.1:6379. Got {address!r} instead.")


@contextmanager
def open_engine(
    kind: str = "local",
    shards: int | None = None,
    address: str | None = None,
    folder: Path | None = None,
    warn: Callable[[str], None] | None = None,
) -> Iterator[Engine]:
    """An engine, which is closed when the block ends.

    Args:
        kind: local or ray.
        shards: That the work is cut into; None: as many as the sizes ask for.
        address: HOST:PORT of a Ray cluster; None: Ray is started on this machine.
        folder: Gets a folder of temporary files; None: where the system has them.
        warn: Gets warnings.
    """
    check_engine(kind, shards, address)
    engine = _engine(kind, shards, address, folder, warn)
    try:
        yield engine
    finally:
        engine.close()


def _engine(
    kind: str,
    shards: int | None,
    address: str | None,
    folder: Path | None,
    warn: Callable[[str], None] | None,
) -> Engine:
    if kind == "ray":
        from clusterea.engines.ray_cluster import RayCluster

        return RayCluster(shards, address, folder, warn)
    if shards is None or shards == 1:
        return InMemory(shards)
    from clusterea.engines.out_of_core import OutOfCore

    return OutOfCore(shards, folder)
